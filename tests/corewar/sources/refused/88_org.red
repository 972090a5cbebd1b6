 org 1
 dat #0

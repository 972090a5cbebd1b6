 org 0
 org 1
 dat 0
 dat 1

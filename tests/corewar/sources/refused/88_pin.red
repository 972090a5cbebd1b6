 pin 1
 dat #0

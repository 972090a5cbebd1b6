 org 1,2
 dat 0
 dat 0

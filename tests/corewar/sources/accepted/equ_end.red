; END from an EQU
stop equ end 1
 dat 0
 dat 1
 stop
 this is not read

n for 3
 dat #n, #CORESIZE
 rof
x equ #7
 dat x

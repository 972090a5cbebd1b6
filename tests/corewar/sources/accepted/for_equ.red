i for 2
x&i equ i*2
 dat x&i
 rof

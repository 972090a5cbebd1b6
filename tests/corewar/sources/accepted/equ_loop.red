; a whole loop in an EQU
twice equ for 2
 equ dat 1
 equ rof
n for 2
 twice
 dat n
 rof

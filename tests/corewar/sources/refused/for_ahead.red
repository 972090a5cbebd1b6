 for xx
 dat 1
 rof
xx equ 2

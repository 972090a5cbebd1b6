one dat 1
one equ 2
 dat one

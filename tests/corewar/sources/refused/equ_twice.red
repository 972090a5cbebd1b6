xx equ 1
xx equ 2
 dat xx

xx equ 1
 equ 2
 dat xx

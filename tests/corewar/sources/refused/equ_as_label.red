xx equ 1
xx dat 0

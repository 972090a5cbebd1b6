xx equ 3
a&xx dat 0

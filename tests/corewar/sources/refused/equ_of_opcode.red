mov equ 1
 mov 1,2

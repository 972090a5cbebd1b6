; EQU of several lines, comments between
part equ dat 1
; comment

 equ dat 2
label part
 jmp label
whole equ part
 equ part
 whole

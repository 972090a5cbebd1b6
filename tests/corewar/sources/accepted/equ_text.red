; EQU is substitution of text
sum equ 2+1
 dat sum*2, 2*sum
 dat ahead
ahead equ sum
both equ 1,2
 dat both
 mov both

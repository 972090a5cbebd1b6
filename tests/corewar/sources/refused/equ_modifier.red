mm equ i
 mov.mm 1,2

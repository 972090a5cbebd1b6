; EQU may hold any piece
copy equ mov
kind equ .ab
way equ #
 copy kind way 1, 2
nothing equ
 dat 1 nothing
 mov kinds 1,2
kinds equ .x

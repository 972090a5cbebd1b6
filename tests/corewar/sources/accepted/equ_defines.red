; an EQU text may define
make equ made equ 5
 make
 dat made
labelled equ lab dat 7
 labelled
 jmp lab

 dat 5
 dat #5
 jmp 1
 spl @1
 nop 0
 jmp #1

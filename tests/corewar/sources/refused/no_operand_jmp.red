 jmp

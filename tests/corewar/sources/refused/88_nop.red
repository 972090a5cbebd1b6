 nop 0

 dat #1, <2
 dat <1
 mov #1, 2
 mov <1, @2
 add #1, <2
 sub 1, 2
 cmp #1, @2
 slt #1, #2
 jmp @1, #2
 jmz 1, #2
 jmn <1, 2
 djn 1, <2
 spl 1
 end 3

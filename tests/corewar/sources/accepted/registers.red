; single letters are registers
;assert (c=4) == 4
 dat (a=3), a
 dat A+b, c
 dat 1+a=5, a
 dat 2*b=3+1, b
 dat s, w

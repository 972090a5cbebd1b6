xx equ dat 0
;assert xx
 xx

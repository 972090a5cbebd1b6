xx equ yy
yy equ xx
 dat xx

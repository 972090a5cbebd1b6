 dat xx
xx equ yy
yy equ xx

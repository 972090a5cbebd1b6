xx equ xx
 dat xx

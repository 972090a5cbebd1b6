xx equ
 dat xx

n for 2
;assert n==1
rof
 dat 0

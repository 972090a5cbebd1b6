 dat 1+\
2
;name joined \
name
 dat 3 ; comment \
 dat 4
 dat 5

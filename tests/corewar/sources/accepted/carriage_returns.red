 dat 1
 dat 2 ignored
;name unix

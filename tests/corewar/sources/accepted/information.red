Text before
;redcode-94 verbose
;name  A name ; with semicolon  
;Author An author
; strategy one
;strategy two
 dat 1
;redcode
 dat 2

size equ CORESIZE
;assert size==8000 && MAXLENGTH >= 100 ; comment
;assert unknown
;assert 1 +
;assert
;assert 1/0
;assertion 0
 dat 0
;assert CURLINE
 end
;assert 0

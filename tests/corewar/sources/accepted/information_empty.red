;name first
;name
;author: colon
 dat 1 ;name no

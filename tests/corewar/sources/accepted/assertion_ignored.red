;assert 0
;redcode
 dat 1
for 0
;assert 0
rof
label ;assert 0
 dat label

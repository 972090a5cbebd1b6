zero dat 0
 dat 0
for zero+4
 dat 1
rof

for 1000
for 1000
 dat 0
rof
rof

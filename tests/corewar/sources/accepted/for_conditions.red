for CORESIZE > 100
 dat 1
rof
for MAXLENGTH < 10
 dat 2
rof
for WARRIORS == 1 && ROUNDS < 1
 dat 3
rof

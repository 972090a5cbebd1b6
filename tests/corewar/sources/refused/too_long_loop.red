for 101
 dat 0
rof

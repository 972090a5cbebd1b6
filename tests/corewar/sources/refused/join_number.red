n for 2
 dat 1&n
rof

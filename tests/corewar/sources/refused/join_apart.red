n for 1
a & n dat 0
rof

 for
 dat 1
 rof

 dat 0
 rof

;assert a
 dat 0

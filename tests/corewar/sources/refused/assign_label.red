x dat 0
 dat (x=1)

1 dat 0

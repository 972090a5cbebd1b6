 dat 1

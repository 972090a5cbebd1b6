 dat 1

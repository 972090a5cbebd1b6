 dat 1,2,3

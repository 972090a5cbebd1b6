 dat 1/0

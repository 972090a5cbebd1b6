 dat 1.5

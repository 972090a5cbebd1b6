 dat 3=4

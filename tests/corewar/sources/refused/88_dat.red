 dat 5

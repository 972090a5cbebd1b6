 dat 5<<3

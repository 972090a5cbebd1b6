 dat 1,

 dat 2**3

: dat 0

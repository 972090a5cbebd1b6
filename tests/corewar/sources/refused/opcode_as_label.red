mov: dat 0

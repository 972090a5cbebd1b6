é dat 0

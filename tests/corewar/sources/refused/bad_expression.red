 dat 3+

a&b dat 0

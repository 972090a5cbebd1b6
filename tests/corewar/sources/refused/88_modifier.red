 mov.i 1,2

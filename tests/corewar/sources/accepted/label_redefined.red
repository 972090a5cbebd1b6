; a line whose label exists is ignored as a whole
one dat 1
one dat 2
new one dat 3
    dat new

 dat 0
label

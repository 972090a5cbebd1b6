; a missing ROF is only a warning
 dat 0
for 2
 dat 1

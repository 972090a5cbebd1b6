 dat 0
 org -1

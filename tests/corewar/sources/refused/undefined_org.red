 org foo
 dat 0

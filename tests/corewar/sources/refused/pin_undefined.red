 pin foo
 dat 0

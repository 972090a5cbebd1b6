 dat 0
 end foo

 dat 1 \ 
 dat 2

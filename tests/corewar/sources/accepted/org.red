 org start
 dat 0
start dat CURLINE
 dat 2
 end 0

 dat 0
start dat 1
 end start+8000
 not read , , ,

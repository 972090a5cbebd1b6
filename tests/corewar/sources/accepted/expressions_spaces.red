 dat 1 2, 3 4
 dat ( 1 + 2 ) , 3
lab dat 5 - lab , 1
 dat 5 lab, 7

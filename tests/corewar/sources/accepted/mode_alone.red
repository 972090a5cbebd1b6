 mov #, 1
 dat < , 2

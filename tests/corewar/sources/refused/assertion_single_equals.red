;assert CORESIZE = 8000
 dat 0

;assert CORESIZE == 8192
 dat 0

 dat coresize

 dat (1))

 dat ,1

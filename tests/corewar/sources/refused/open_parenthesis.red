 dat ((1)

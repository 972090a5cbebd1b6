 mov.i.x 1,2

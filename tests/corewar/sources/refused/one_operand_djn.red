 djn 1

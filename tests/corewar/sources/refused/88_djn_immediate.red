 djn #1,2

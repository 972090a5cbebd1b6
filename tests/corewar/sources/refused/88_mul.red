 mul 1,2

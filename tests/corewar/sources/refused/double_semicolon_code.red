 dat 1 # not a comment

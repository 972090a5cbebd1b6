 dat mov

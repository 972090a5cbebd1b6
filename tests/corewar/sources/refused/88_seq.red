 seq 1,2

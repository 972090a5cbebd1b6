 mov.c 1,2

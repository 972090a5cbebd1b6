 mov #1 #2

; a single = swallows a character
 dat 8000=8000, 10=20

n for 2
n for 2
 dat n
 rof
 rof

; counters have two digits
n for 12
l&n dat n, l&n
 rof
 dat l01, l12

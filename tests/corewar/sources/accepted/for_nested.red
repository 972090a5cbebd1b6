n for 3
m for n
x&n&m dat n, m
 rof
 rof
 dat x0302

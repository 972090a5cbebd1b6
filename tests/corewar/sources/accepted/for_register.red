for (a=3)
 dat a=a+1
rof

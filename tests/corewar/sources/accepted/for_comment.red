; a loop of no turns is a comment
for 0
Anything, even "this"; and
for 5
mov for
rof
rof words behind
 dat 1
for -3
$$$
rof

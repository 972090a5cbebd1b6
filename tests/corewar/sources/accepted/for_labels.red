here
there n for 2
 dat here, there
 rof
back for 1
end1 rof
 dat end1

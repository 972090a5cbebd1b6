 dat 1
 end
;name late
;author later

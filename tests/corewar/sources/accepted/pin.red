; PIN leaves no trace in the listing
 pin 5
 ldp #0, 1
 pin CURLINE

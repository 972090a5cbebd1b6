 dat last
last

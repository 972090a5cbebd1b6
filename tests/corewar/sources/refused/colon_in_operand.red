 dat a:=3

 dat ()

 dat #$1,2

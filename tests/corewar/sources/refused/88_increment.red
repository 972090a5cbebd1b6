 dat >1

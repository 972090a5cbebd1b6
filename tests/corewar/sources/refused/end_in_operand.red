 dat end

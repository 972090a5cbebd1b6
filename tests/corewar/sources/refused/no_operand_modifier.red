 dat.f

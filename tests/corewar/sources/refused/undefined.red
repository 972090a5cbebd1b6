 dat foo

lab : dat lab

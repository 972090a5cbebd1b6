 mov 1

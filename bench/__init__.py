"""Measurements against named peers: `make bench`. One module per room, each with `measure()`."""

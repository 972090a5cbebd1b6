"""Posing and scoring tasks away from the node, where a text can do no harm."""

"""`shoal judge`: a node that asks training nodes one fresh question after each of their rounds, scores the
one answer and keeps a board. Nothing of it enters anybody's training.
"""

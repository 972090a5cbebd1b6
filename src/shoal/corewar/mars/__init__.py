"""The simulator: the C engine and its wall (binding.py), playing on it (engine.py), the places of warriors
(placement.py), and the specification in plain Python (reference.py)."""

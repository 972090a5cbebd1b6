"""The simulator: the C engine and its wall (binding.py), playing on it (engine.py), places (placement.py)."""

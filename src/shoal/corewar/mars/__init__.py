"""The simulator: a C engine (engine.py), where warriors stand (placement.py), and the specification
in plain Python (reference.py) that the engine is tested against."""

"""Experiments: arms × seeds, done side by side, resumed where they were left, told with intervals.

These names know nothing of what an arm does. `lab.compare` compares searches, `lab.sweep` training swarms.
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)

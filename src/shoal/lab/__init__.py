"""Experiments: arms × seeds, done side by side, resumed where they were left, told with intervals. `compare`
is about searches, `sweep` about training swarms; the others know nothing of what an arm does."""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)

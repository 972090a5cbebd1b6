"""The things that a run leaves behind and goes on from: folder, journal, checkpoints, budgets, seeds."""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)

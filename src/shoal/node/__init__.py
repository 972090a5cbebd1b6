"""The one loop, produce → share → gather → verify → absorb, and its drivers. Knows verbs, no applications."""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)

"""Published set-ups as config files, `<name>.toml` in this folder."""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)

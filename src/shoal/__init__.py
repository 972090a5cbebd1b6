"""Shoal: different models learn and search together by sharing experience instead of weights."""

__version__ = "0.1.0"

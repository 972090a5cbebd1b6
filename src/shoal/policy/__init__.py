"""Policies: what writes completions and learns from rewarded ones."""

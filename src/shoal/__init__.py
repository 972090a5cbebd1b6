"""Shoal: different models learn and search together by sharing experience instead of weights.

    import shoal

    summary = shoal.run_search("runs/first", models=["builtin:bomber", "builtin:scanner"], calls=200)
    summary = shoal.run_training("runs/sums", models="tiny:llama", nodes=2, steps=20)

Names are loaded when first used, so that `import shoal` is quick. The rooms `shoal.corewar`, `shoal.evolve`,
`shoal.models`, `shoal.node`, `shoal.policy`, `shoal.presets`, `shoal.runs`, `shoal.swarm` and `shoal.tasks`
have further ones.
"""

from shoal.lazy import lazily

__version__ = "0.2.0"

__all__, __getattr__ = lazily(__name__, __file__)

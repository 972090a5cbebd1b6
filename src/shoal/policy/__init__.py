"""Policies sample completions and learn from rewarded ones.

    from shoal.policy import Learning, LearningGroup, Sampling, advantages, open_policy

    policy = open_policy("tiny:llama")
    (group,) = policy.sample(["3+4="], 8, Sampling(max_new_tokens=4), seed=1)
    rewards = [1.0 if one.text.strip() == "7" else 0.0 for one in group]
    policy.learn([LearningGroup("3+4=", group, advantages([rewards])[0])], Learning(), temperature=1.0)

Names are loaded when first used, so that torch is imported only with a policy that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.lazy import lazily

if TYPE_CHECKING:
    from shoal.policy.advantage import advantages as advantages
    from shoal.policy.advantage import is_informative as is_informative
    from shoal.policy.base import Learning as Learning
    from shoal.policy.base import LearningGroup as LearningGroup
    from shoal.policy.base import Learnt as Learnt
    from shoal.policy.base import Policy as Policy
    from shoal.policy.base import Sampled as Sampled
    from shoal.policy.base import Sampling as Sampling
    from shoal.policy.contributor import open_contributor as open_contributor
    from shoal.policy.selection import Walk as Walk
    from shoal.policy.selection import choose as choose
    from shoal.policy.selection import walk as walk
    from shoal.policy.specification import open_policy as open_policy

__all__, __getattr__ = lazily(
    __name__,
    {
        "advantage": ("advantages", "is_informative"),
        "base": ("Learning", "LearningGroup", "Learnt", "Policy", "Sampled", "Sampling"),
        "contributor": ("open_contributor",),
        "selection": ("Walk", "choose", "walk"),
        "specification": ("open_policy",),
    },
)

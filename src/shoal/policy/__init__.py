"""Policies sample completions and learn from rewarded ones.

    from shoal.policy import Learning, LearningGroup, Sampling, advantages, open_policy

    policy = open_policy("tiny:llama")
    (group,) = policy.sample(["3+4="], 8, Sampling(max_new_tokens=4), seed=1)
    rewards = [1.0 if one.text.strip() == "7" else 0.0 for one in group]
    policy.learn([LearningGroup("3+4=", group, advantages([rewards])[0])], Learning(), temperature=1.0)

Names are loaded when first used, so that torch is imported only with a policy that needs it.
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)

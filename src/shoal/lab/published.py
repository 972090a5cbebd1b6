"""The numbers that the papers report, each in this one place, with its provenance.

DEI, Diversity in Evolutionary Inference (arXiv 2605.27130 v1): as full readings of it by others report them;
the paper itself was not at hand. SAPO, Swarm sAmpling Policy Optimization (arXiv 2509.08721 v1): from the
paper, its curves read off the figure by eye.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.runs.papers import How, Published

NOT_FOUND = "not found"


def _all(how: How, **values: float) -> dict[str, Published]:
    return {name: Published(value, how=how) for name, value in values.items()}


def _told(value: float, deviation: float | None = None, highest: float | None = None) -> Published:
    return Published(value, deviation, highest, "second-hand")


PUBLISHED_CALLS = {"nodes": 4, "each": 62, "solo": 250}
"""Calls of a round in the DEI paper: 62 for each of four nodes, and 250 for a node alone."""

# DEI. Families of arms have our names: "solo", "homogeneous" (Homo), "heterogeneous" (Diverse).

DEI_FINAL: Mapping[str, Mapping[str, Published]] = {
    "solo": {
        **_all("second-hand", coverage=63.0, qd_score=20.46),
        **_all("computed", per_cell=0.90),
    },
    "homogeneous": {
        **_all("second-hand", coverage=59.0, qd_score=29.85),
        **_all("computed", per_cell=1.40),
    },
    "heterogeneous": {
        **_all("second-hand", coverage=80.6, qd_score=45.90),
        **_all("computed", per_cell=1.58),
    },
}
"""Table 3 and Figure 3: the merged archives of the final round. `coverage` in percent; `per_cell` is the mean
fitness of a filled cell, QD-score / (coverage × 36 cells)."""

DEI_CHANGES: Mapping[tuple[str, str], Mapping[str, Published]] = {
    ("homogeneous", "solo"): _all("second-hand", coverage=-4.0, qd_score=46),
    ("heterogeneous", "solo"): {**_all("computed", coverage=17.6), **_all("second-hand", qd_score=124)},
    ("heterogeneous", "homogeneous"): _all("second-hand", coverage=21.6, qd_score=54),
}
"""The first family against the second: coverage in points, QD-score in percent."""

DEI_NODES: Mapping[str, Mapping[str, Published | str]] = {
    "Claude Sonnet 4.6": {
        "solo": _told(0.775, 0.035),
        "homogeneous": _told(0.825, 0.106),
        "homogeneous_novelty": _told(0.348, 0.039),
        "heterogeneous": _told(0.850, 0.087),
        "heterogeneous_novelty": _told(0.483, 0.120),
    },
    "GPT-5.4-mini": {
        "solo": "not found; below Homo",
        "homogeneous": _told(0.725, 0.029),
        "homogeneous_novelty": _told(0.119, 0.013),
        "heterogeneous": _told(0.767, 0.076),
        "heterogeneous_novelty": _told(0.422, 0.072),
    },
    "Claude Haiku 4.5": {
        "solo": _told(0.650),
        "homogeneous": _told(0.538, 0.063),
        "homogeneous_novelty": NOT_FOUND,
        "heterogeneous": _told(0.700, 0.050),
        "heterogeneous_novelty": _told(0.443, 0.132),
    },
    "GPT-5.2": {
        "solo": _told(0.650),
        "homogeneous": "not found; below Diverse",
        "homogeneous_novelty": NOT_FOUND,
        "heterogeneous": _told(0.767),
        "heterogeneous_novelty": NOT_FOUND,
    },
}
"""The results by model: generality, a win rate over probably 20 held-out programs, and niche novelty. Means
and deviations are over probably 2 to 4 runs."""

DEI_NOVELTY_RANGE: Mapping[str, Published] = {
    "homogeneous_novelty": _told(0.09, highest=0.35),
    "heterogeneous_novelty": _told(0.42, highest=0.48),
}
"""Over the four models."""

# SAPO. Mixes are own/foreign groups of a step.

SAPO_STEPS = 2000

SAPO_TOTALS: Mapping[str, Mapping[str, Published]] = {
    "8/0": {
        **_all("stated", total=561.79),
        **_all("computed", mean=0.0351),
        **_all("read off", spike=0.29),
    },
    "6/2": {
        **_all("stated", total=854.43, gain=52),
        **_all("computed", mean=0.0534),
        **_all("read off", spike=0.46),
    },
    "4/4": {
        **_all("stated", total=1093.31, gain=94),
        **_all("computed", mean=0.0683),
        **_all("read off", spike=0.68),
    },
    "2/6": {
        **_all("stated", total=945.87, gain=68),
        **_all("computed", mean=0.0591),
        **_all("read off", spike=0.88),
    },
}
"""`total`: reward summed over 8 agents and 2000 rounds; `gain` over 8/0 in percent; `mean` of an agent and
round; `spike`: the highest reward of one agent in one round."""

SAPO_MIXES = ("8/0", "6/2", "4/4", "2/6")
_SMOOTHED: Mapping[int, tuple[float, float, float, float]] = {
    0: (0.004, 0.011, 0.014, 0.012),
    250: (0.010, 0.022, 0.045, 0.021),
    500: (0.030, 0.048, 0.067, 0.045),
    1000: (0.044, 0.072, 0.075, 0.063),
    1500: (0.046, 0.072, 0.102, 0.060),
    1850: (0.050, 0.070, 0.085, 0.115),
}
_HIGHEST = {(1850, "4/4"): 0.10}

SAPO_SMOOTHED: Mapping[int, Mapping[str, Published]] = {
    step: {
        mix: Published(value, None, _HIGHEST.get((step, mix)), "read off")
        for mix, value in zip(SAPO_MIXES, values, strict=True)
    }
    for step, values in _SMOOTHED.items()
}
"""The figure: reward of a round, moving average over 100 rounds, mean over agents. At about 1850 2/6 has its
peak; by 1900 it has fallen to 0.07."""

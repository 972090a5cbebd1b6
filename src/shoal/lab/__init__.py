"""Experiments: arms × seeds, done side by side, resumed where they were left, told with intervals.

These names know nothing of what an arm does. `lab.compare` and `lab.findings` are the comparison of searches.
"""

from shoal.lab.experiment import Arm, Experiment, Outcome, Plan, Trial
from shoal.lab.running import Progress, Task, run_trials
from shoal.lab.statistics import estimate, paired_difference, superiority, verdict

__all__ = [
    "Arm",
    "Experiment",
    "Outcome",
    "Plan",
    "Progress",
    "Task",
    "Trial",
    "estimate",
    "paired_difference",
    "run_trials",
    "superiority",
    "verdict",
]

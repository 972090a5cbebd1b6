from shoal.lab.experiment import (
    Arm as Arm,
    Experiment as Experiment,
    Plan as Plan,
    Trial as Trial,
    TrialResult as TrialResult,
)
from shoal.lab.running import Progress as Progress, Task as Task, run_trials as run_trials
from shoal.lab.statistics import (
    estimate as estimate,
    paired_difference as paired_difference,
    superiority as superiority,
    verdict as verdict,
)

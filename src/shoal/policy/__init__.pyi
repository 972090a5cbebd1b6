from shoal.policy.advantage import advantages as advantages, is_informative as is_informative
from shoal.policy.base import (
    Learning as Learning,
    LearningGroup as LearningGroup,
    Learnt as Learnt,
    Policy as Policy,
    Sampled as Sampled,
    Sampling as Sampling,
)
from shoal.policy.contributor import open_contributor as open_contributor
from shoal.policy.selection import Walk as Walk, choose as choose, walk as walk
from shoal.policy.specification import open_policy as open_policy

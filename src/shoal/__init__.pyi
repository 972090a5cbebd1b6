from shoal.api import (
    read_summary as read_summary,
    resume_run as resume_run,
    run_search as run_search,
    run_training as run_training,
)
from shoal.errors import ShoalError as ShoalError
from shoal.evolve.domain import open_domain as open_domain
from shoal.evolve.settings import EvolveSettings as EvolveSettings
from shoal.models.registry import open_model as open_model
from shoal.policy.specification import open_policy as open_policy
from shoal.tasks.registry import open_task as open_task
from shoal.train.settings import TrainSettings as TrainSettings

__version__: str

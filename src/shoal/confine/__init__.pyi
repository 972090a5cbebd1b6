from shoal.confine.process import IdleError as IdleError, StoppedError as StoppedError, Worker as Worker
from shoal.confine.sandbox import Coverage as Coverage
from shoal.confine.worker import Orders as Orders, Service as Service

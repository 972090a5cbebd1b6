from shoal.confine.process import IdleError as IdleError, StoppedError as StoppedError, Worker as Worker
from shoal.confine.wire import Coverage as Coverage, Orders as Orders
from shoal.confine.worker import Service as Service

"""A bounded memory of evaluations, so that no program is played twice under the same conditions."""

from __future__ import annotations

import threading
from collections import OrderedDict

from shoal.errors import ConfigError
from shoal.evolve.elite import Evaluation


class EvaluationCache:
    """Evaluations by (program, evaluator), at most `limit`: what was not asked for longest is forgotten.

    An evaluation is a function of its key, so a hit and a miss give the same numbers. Safe to share
    between threads.
    """

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ConfigError(f"cache of {limit} evaluations: give 0 (none) or more")
        self.limit = limit
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[tuple[str, str], Evaluation] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, digest: str, evaluator: str) -> Evaluation | None:
        with self._lock:
            found = self._entries.get((digest, evaluator))
            if found is None:
                self.misses += 1
            else:
                self.hits += 1
                self._entries.move_to_end((digest, evaluator))
            return found

    def put(self, digest: str, evaluation: Evaluation) -> Evaluation:
        with self._lock:
            self._entries[digest, evaluation.evaluator] = evaluation
            self._entries.move_to_end((digest, evaluation.evaluator))
            while len(self._entries) > self.limit:
                self._entries.popitem(last=False)
        return evaluation

"""The nodes of a training run as what drives them sees them."""

from __future__ import annotations

from pathlib import Path

from shoal.node import ExchangeLike
from shoal.runs import RunFolder
from shoal.train.opening import open_policy, open_verifier
from shoal.train.rollouts import rollout_kinds
from shoal.train.seat import TrainSeat, take_seat
from shoal.train.settings import TrainSettings
from shoal.train.standing import TrainWatcher


class TrainCrew:
    """One node per plan. Nodes of one process share nothing but the processor."""

    child_module = "shoal.train.child"

    def __init__(self, settings: TrainSettings) -> None:
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = rollout_kinds()
        self.shares = settings.sharing != "off"
        self.linger = settings.linger
        self.at_terminal = settings.at_terminal

    def take_seat(
        self,
        index: int,
        run: RunFolder,
        *,
        author: str,
        now: float,
        exchange: ExchangeLike | None,
        real_time: bool,
    ) -> TrainSeat:
        plan = self.settings.of(index)
        verifier = open_verifier(self.settings)
        return take_seat(
            self.settings,
            index,
            run,
            author=author,
            now=now,
            exchange=exchange,
            verifier=verifier,
            open_policy=lambda: open_policy(self.settings, plan, verifier),
        )

    def watch(self, index: int, journal: Path) -> TrainWatcher:
        return TrainWatcher(self.settings, index, journal)

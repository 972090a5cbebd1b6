"""Where a node of a training run stands, from its journal alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.node.standing import Standing, Tally
from shoal.train.settings import TrainSettings
from shoal.train.train_state import Happened


class NodeProgress(Standing, frozen=True, kw_only=True):
    """`work` and `spent` are tokens that the node generated for its steps. `reward_local` is of its last
    step, `reward_held_out` of its last evaluation; `said` explains its last turn."""

    step: int = 0
    steps: int = 0
    reward_local: float | None = None
    reward_held_out: float | None = None
    said: str = ""


class TrainWatcher:
    """Follows one node, the `index`-th of the run."""

    def __init__(self, settings: TrainSettings, index: int, journal: Path) -> None:
        self._plan = settings.of(index)
        self._steps = settings.steps
        self._allowed = settings.tokens
        self._tally = Tally(journal)
        self._decode = msgspec.json.Decoder(Happened).decode
        self._step = 0
        self._used = 0
        self._local: float | None = None
        self._held_out: float | None = None
        self._said = ""

    def look(self, *, ended: bool = False, trouble: str = "") -> NodeProgress:
        for note in self._tally.read():
            self._add(self._decode(note))
        tokens = self._tally.ledger.spent.get("tokens", 0)
        return NodeProgress(
            name=self._plan.name,
            model=self._plan.model,
            done=1.0 if ended and not trouble else self._done(tokens),
            work=tokens,
            spent=tokens,
            allowed=self._allowed,
            traffic=self._tally.traffic(self._used),
            ended=ended,
            trouble=trouble or self._tally.trouble,
            step=self._step,
            steps=self._steps,
            reward_local=self._local,
            reward_held_out=self._held_out,
            said=self._said,
        )

    def _done(self, tokens: int) -> float:
        """By steps or by tokens, whichever runs out first."""
        by_tokens = tokens / self._allowed if self._allowed else 0.0
        return min(1.0, max(self._step / self._steps, by_tokens))

    def _add(self, happened: Happened) -> None:
        self._step = happened.step
        self._used += happened.used
        self._said = happened.said
        if happened.reward_local is not None:
            self._local = happened.reward_local
        if total := sum(one.total for one in happened.held_out.values()):
            self._held_out = sum(one.reward for one in happened.held_out.values()) / total

"""What is shown of a search and of a training run while they go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.cli.columns import Column, amount, clock, number, rate, share_of
from shoal.cli.progress import View

if TYPE_CHECKING:
    from shoal.evolve import running as searching
    from shoal.node.standing import Standing
    from shoal.train import running as learning

TRAFFIC = (
    Column("peers", "peer", "{} peers seen", 4, lambda node: str(node.traffic.peers)),
    Column("shared", "out", "{} shared", 5, lambda node: amount(node.traffic.shared)),
    Column("received", "in", "{} received", 3, lambda node: amount(node.traffic.received)),
    Column("rejected", "bad", "{} rejected", 6, lambda node: amount(node.traffic.rejected)),
    Column("used", "used", "{} used", 2, lambda node: amount(node.traffic.used)),
)


def left(node: Standing) -> str:
    if node.trouble:
        return "failed"
    return "done" if node.ended else clock(node.seconds_left)


LEFT = Column("time left", "left", "time left {}", 0, left)

SEARCH = (
    Column("round", "rnd", "round {}", 0, lambda node: f"{node.round}/{node.rounds}"),
    Column("evaluations/s", "ev/s", "{} evaluations/s", 2, lambda node: rate(node.per_second)),
    Column("coverage", "cover", "coverage {}", 1, lambda node: f"{100 * node.coverage:.0f}%"),
    Column("QD-score", "QD", "QD-score {}", 1, lambda node: number(node.qd_score)),
    Column("best", "best", "best {}", 7, lambda node: number(node.best)),
    *TRAFFIC,
    Column("calls", "calls", "{} calls", 1, lambda node: share_of(node.spent, node.allowed)),
    LEFT,
)

TRAINING = (
    Column("step", "step", "step {}", 0, lambda node: f"{node.step}/{node.steps}"),
    Column("tokens/s", "tok/s", "{} tokens/s", 2, lambda node: rate(node.per_second)),
    Column("reward", "rew", "reward {}", 1, lambda node: number(node.reward_local)),
    Column("held-out", "held", "held-out {}", 1, lambda node: number(node.reward_held_out)),
    *TRAFFIC,
    Column("tokens", "tokens", "{} tokens", 3, lambda node: share_of(node.spent, node.allowed)),
    LEFT,
)


def search_view() -> View[searching.Progress]:
    def title(progress: searching.Progress) -> str:
        return f"{progress.calls} of {progress.budget} calls"

    def figures(node: searching.NodeProgress) -> dict[str, Any]:
        return {
            "round": node.round,
            "rounds": node.rounds,
            "evaluations": node.work,
            "evaluations_per_second": node.per_second,
            "coverage": node.coverage,
            "qd_score": node.qd_score,
            "best": node.best,
            "calls": node.spent,
            "calls_allowed": node.allowed,
        }

    return View(SEARCH, title, figures)


def train_view() -> View[learning.Progress]:
    def title(progress: learning.Progress) -> str:
        if progress.making:
            models = ", ".join(f"{name} {100 * share:.0f}%" for name, share in progress.making.items())
            return f"making {models} (first use)"
        return f"{progress.steps} of {progress.budget} steps"

    def figures(node: learning.NodeProgress) -> dict[str, Any]:
        return {
            "step": node.step,
            "steps": node.steps,
            "tokens": node.spent,
            "tokens_allowed": node.allowed,
            "tokens_per_second": node.per_second,
            "reward": node.reward_local,
            "reward_held_out": node.reward_held_out,
        }

    return View(TRAINING, title, figures)

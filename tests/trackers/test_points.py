"""Notes become numbers; what a note does not say is not written as 0."""

from __future__ import annotations

import msgspec
import pytest
from shoal.evolve.search_state import Happened as Searched
from shoal.evolve.search_state import Placed
from shoal.train.steps import Right
from shoal.train.train_state import Happened as Trained

from shoal.trackers.points import point_of


def raw(note: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(note))


def test_a_proposal_that_took_a_cell() -> None:
    note = Searched(7, 1, "propose", "new", cell=(1, 2), fitness=0.5, cells=4, best=0.75)
    assert point_of("evolve", raw(note)) == (7, {"cells": 4.0, "best": 0.75, "fitness_placed": 0.5})


def test_a_rejected_proposal_has_no_fitness_placed() -> None:
    note = Searched(8, 1, "propose", "rejected", cell=(1, 2), fitness=0.5, cells=4, best=0.75)
    assert point_of("evolve", raw(note)) == (8, {"cells": 4.0, "best": 0.75})


def test_an_opening_places_several() -> None:
    placed = tuple(Placed((0, place), fitness, "d", "m", "n") for place, fitness in enumerate((1.0, 2.0)))
    note = Searched(2, 1, "open", placed=placed, cells=2, best=2.0)
    assert point_of("evolve", raw(note)) == (2, {"cells": 2.0, "best": 2.0, "fitness_placed": 1.5})


def test_a_drain_has_no_numbers() -> None:
    assert point_of("evolve", raw(Searched(1, 1, "drain", visitors=3))) is None


def test_a_step_of_training() -> None:
    note = Trained(
        3, 2, "step", own=4, own_informative=1, reward_local=0.25, reward_batch=0.5, verified=8, used=2,
        loss=-0.1, gradient_norm=1.5, tokens=64,
    )  # fmt: skip
    assert point_of("train", raw(note)) == (
        2,
        {
            "reward_local": 0.25,
            "reward_batch": 0.5,
            "loss": -0.1,
            "gradient_norm": 1.5,
            "used": 2.0,
            "verified": 8.0,
            "tokens": 64.0,
            "informative_share": 0.25,
        },
    )


def test_an_evaluation_is_the_mean_over_all_held_out_tasks() -> None:
    note = Trained(4, 2, "evaluation", held_out={"sums": Right(1, 4, 1.0), "lists": Right(2, 4, 2.0)})
    assert point_of("train", raw(note)) == (2, {"reward_held_out": 0.375})
    assert point_of("train", raw(Trained(4, 2, "evaluation"))) is None


def test_a_missed_turn_and_an_unknown_application_have_none() -> None:
    assert point_of("train", raw(Trained(4, 2, "missed"))) is None
    assert point_of("swim", raw({"turn": 1})) is None


@pytest.mark.parametrize(
    "note", [{"turn": -1}, {"turn": 1 << 60}, {"turn": 1, "best": "high"}, [], {"cells": 3}]
)
def test_notes_of_another_shape_are_refused(note: object) -> None:
    with pytest.raises(msgspec.MsgspecError):
        point_of("evolve", raw(note))

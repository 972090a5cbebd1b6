"""Settings of a training run: bounds, what some models cannot follow, and settings of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.policy.base import Learning
from shoal.train.outside import problem_of
from shoal.train.settings import TrainSettings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"top_p": 0.0}, "top_p: Expected `float` > 0.0"),
        ({"top_p": 1.1}, "top_p: Expected `float` <= 1.0"),
        ({"advantage_epsilon": 0.0}, "advantage_epsilon: Expected `float` > 0.0"),
        ({"least_spread": -0.1}, "least_spread: Expected `float` >= 0.0"),
        ({"precision": "fp16"}, "precision: Invalid enum value 'fp16'"),
        ({"selection": "all"}, "selection: Invalid enum value 'all'"),
        ({"learning": Learning(adam_beta1=1.0)}, "learning.adam_beta1: Expected `float` < 1.0"),
        ({"learning": Learning(adam_epsilon=0.0)}, "learning.adam_epsilon: Expected `float` > 0.0"),
        ({"learning": Learning(gradient_norm=-1.0)}, "learning.gradient_norm: Expected `float` >= 0.0"),
        ({"parameters": {"sumz": {}}}, "parameters.sumz: no task is called 'sumz'; did you mean sums?"),
        ({"parameters": {"bf": {}, "gym:bf": {}}}, "parameters.gym:bf: bf is the same family: join the two"),
    ],
)
def test_a_wrong_value_is_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainSettings(**changes).check()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["table:small", "frozen:table:small"])
def test_what_a_table_cannot_follow_is_refused_before_anything_starts(model: str) -> None:
    for changes, said in (
        ({"precision": "bf16"}, "precision: table:small computes in fp32"),
        ({"learning": Learning(kl=0.1)}, "learning.kl: table:small keeps no reference"),
        ({"learning": Learning(adam_beta2=0.9)}, "learning.adam_beta2: table:small takes plain steps"),
    ):
        with pytest.raises(ConfigError, match=said):
            TrainSettings(models=("tiny:llama", model), **changes).check()
        TrainSettings(**changes).check()
    followed = Learning(gradient_norm=0.0)
    TrainSettings(models=(model,), top_p=0.5, precision="fp32", learning=followed).check()


def test_a_prompt_that_a_model_does_not_read_is_told() -> None:
    models = ("table:small", "tiny:llama", "table:small", "frozen:program:cat")
    told = TrainSettings(nodes=4, models=models, prompt="chat").remarks()
    assert [line.partition(" reads")[0] for line in told] == ["table:small", "program:cat"]
    assert TrainSettings(nodes=4, models=models).remarks() == []


def test_settings_of_tasks_are_found_by_either_name_and_rest_without_a_task() -> None:
    both = {"gym:bf": {"difficulty": 2}, "sums": {"terms": 3}}
    settings = TrainSettings(tasks=("bf",), parameters=both)
    settings.check()
    assert problem_of(settings, "bf", 1).parameters == '{"difficulty":2}'
    assert problem_of(settings, "gym:bf", 1).parameters == '{"difficulty":2}'
    assert problem_of(settings, "compare", 1).parameters == "{}"
    assert settings.remarks() == ["parameters of sums: no task of the run is of such a family"]

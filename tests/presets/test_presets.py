"""The presets say what the papers and their code say. The tables here are typed from the reconstruction of the
papers, line by line, and not read from the presets' files. The words behind the values are the provenance: *stated* in
the paper, *code* (of DRQ (Digital Red Queen), which DEI builds on; of GenRL, RL-Swarm and their task recipe for SAPO),
*inferred*, or *not found*."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.evolve.settings import EvolveSettings
from shoal.presets import PAPERS, find_preset, presets
from shoal.runs.config import load, parse
from shoal.tasks.registry import open_task
from shoal.train.settings import TrainSettings
from tests.cli.conftest import Shoal, shoal

__all__ = ["shoal"]

SETTINGS: dict[str, type[Any]] = {"evolve": EvolveSettings, "train": TrainSettings}

DEI: dict[str, Any] = {
    # Nodes: 4; GPT-5.4-mini, Claude Sonnet 4.6, GPT-5.2, Claude Haiku 4.5 (stated)
    "models": [
        "openai:gpt-5.4-mini",
        "anthropic:claude-sonnet-4-6",
        "openai:gpt-5.2",
        "anthropic:claude-haiku-4-5",
    ],
    "calls_per_round": 62,  # iterations per round: 250 solo, 62 per node in ensembles (stated)
    "calls": 62 * 4 * 20,
    "new_share": 0.1,  # share of calls that create from scratch (stated)
    "options.core_size": 8000,  # stated
    "options.cycles": 80_000,  # stated
    "repeats": 20,  # battles per evaluation (stated)
    "options.processes": 8000,  # code
    "options.length": 100,  # code
    "options.distance": 100,  # code
    "options.axes": ["spawned", "coverage"],  # 6 × 6 cells (inferred and code)
    "informed": False,  # no word about fitness or opponents (inferred)
    "options.brief": False,  # DRQ's system prompt is a whole reference of the language (stated)
    "repair": False,  # a parse error gives fitness -infinity (code)
    "temperature": 1.0,  # not found; DRQ 1.0
    "rounds": 20,  # not found; DRQ's reference command 20
    "opponents": ["imp"],  # not found; DRQ's reference command: imp
    "history": 20,  # not found; DRQ's reference command 20
    "seed_opponents": True,  # warm start with initial opponents (code: the reference command)
    "seed_champions": True,  # warm start with past champions (code: the reference command)
    "warm_start": 8,  # not found; DRQ 8
    "early_stop": None,  # not found
    "finalists": 1,  # champion = best-fitness elite (stated)
    "look_ahead": 1,  # one mutant per step (code)
    "options.edges.spawned": [1, 10, 100, 1000, 10_000],  # <1, <10, <100, <1000, <10000, rest (code)
    "options.edges.coverage": [10, 100, 500, 1000, 4000],  # <10, <100, <500, <1000, <4000, rest (code)
    "early_stop_fitness": None,  # not found
    "grammar": False,  # answers are free text (code)
    "sharing": "both",  # received champions: opponents, and seeds of the archive (stated)
    "fresh_only": False,  # elites are mutated (stated)
    "domain": "corewar",
}

PROMPTS = "prompts = Shoal's own (published: those of DRQ's code; give them with --set prompts=FOLDER)"
"""Said of every search that has not DRQ's prompts: they are no part of Shoal."""

DRQ: dict[str, Any] = {
    "models": ["openai:gpt-4.1-mini-2025-04-14"],  # stated, code
    "temperature": 1.0,  # code
    "rounds": 20,  # code: the reference command
    "calls_per_round": 250,  # code: the reference command
    "calls": 250 * 20,
    "new_share": 0.1,  # code
    "warm_start": 8,  # warriors at round start (code)
    "look_ahead": 1,  # mutants per step (code)
    "history": 20,  # K in the reference command (code)
    "seed_opponents": True,  # code: the reference command
    "seed_champions": True,  # code: the reference command
    "options.axes": ["spawned", "coverage"],  # code
    "options.core_size": 8000,  # stated, code
    "options.cycles": 80_000,  # stated, code
    "options.processes": 8000,  # stated, code
    "options.length": 100,  # stated, code
    "options.distance": 100,  # stated, code
    "repeats": 20,  # simulations per evaluation (stated)
    "opponents": ["imp"],  # code: the reference command
    "informed": False,  # no fitness, opponent or history is shown (code)
    "options.brief": False,  # about 15 kB of Redcode reference (code)
    "repair": False,  # parse error: fitness -infinity, no cell (code)
    "finalists": 1,  # champion of a round = best elite of its archive (code)
    "options.edges.spawned": [1, 10, 100, 1000, 10_000],  # <1, <10, <100, <1000, <10000, rest (code)
    "options.edges.coverage": [10, 100, 500, 1000, 4000],  # <10, <100, <500, <1000, <4000, rest (code)
    "early_stop_fitness": 0.8,  # fitness threshold (code)
    "early_stop": None,
    "grammar": False,  # answers are free text (code)
    "sharing": "off",  # a single line
    "fresh_only": False,
    "domain": "corewar",
}


RECIPE: dict[str, dict[str, Any]] = {
    # Task generator settings in the public recipe (code)
    "arc_1d": {"min_size": 10, "max_size": 30, "num_train": 3},
    "basic_arithmetic": {
        "min_terms": 2, "max_terms": 6, "min_digits": 1, "max_digits": 4, "operators": ["+", "-", "*", "/"],
        "allow_parentheses": True, "allow_negation": True, "format_style": "natural", "whitespace": "single",
    },
    "base_conversion": {"min_base": 2, "max_base": 16, "min_value": 0, "max_value": 1000},
    "bf": {"difficulty": 1},
    "binary_matrix": {"min_n": 3, "max_n": 10, "p_zero": 0.25},
    "calendar_arithmetic": {
        "year": 2023, "offset_upper_bound": 100, "leap_year_range": 200,
        "tasks": ["count_days", "weekday_of_date", "is_leap_year", "recurring_event_day"],
    },
    "decimal_arithmetic": {
        "min_terms": 2, "max_terms": 6, "min_num_decimal_places": 1, "max_num_decimal_places": 3, "precision": 5,
    },
    "fraction_simplification": {
        "min_value": 1, "max_value": 100, "min_factor": 2, "max_factor": 100,
        "styles": ["plain", "latex_frac", "latex_dfrac"],
    },
    "propositional_logic": {
        "min_vars": 2, "max_vars": 4, "min_statements": 2, "max_statements": 4, "min_complexity": 1,
        "max_complexity": 3,
    },
}  # fmt: skip

SAPO: dict[str, Any] = {
    "nodes": 8,  # 8 agents (stated)
    "models": ["local:./Qwen2.5-0.5B-Instruct"],  # Qwen2.5-0.5B (stated); the Instruct variant (code)
    "tasks": [  # the nine specialties (stated)
        "base_conversion", "basic_arithmetic", "arc_1d", "bf", "propositional_logic", "fraction_simplification",
        "decimal_arithmetic", "calendar_arithmetic", "binary_matrix",
    ],
    "specialists": False,  # drawn uniformly with replacement (stated)
    "parameters": RECIPE,
    "local": 4,  # 8 groups per round = I + J, best 4/4 (stated)
    "external": 4,
    "group": 8,  # completions per question (stated)
    "steps": 2000,  # rounds (stated)
    "max_new_tokens": 256,  # not found; later GenRL 256
    "temperature": 1.0,  # code
    "top_p": 1.0,  # code
    "prompt": "chat",  # the chat template (code)
    "system": "gym:default",  # ReasoningGYM "default" (code)
    "answers": "tags",  # last <answer>...</answer> span (code)
    "reward": "binary",  # 1 if the verifier parses a correct answer, else 0 (stated)
    "scale": "group",  # (r - mean) / (std + 1e-8) of the group (code)
    "advantage_epsilon": 1e-8,  # code
    "least_spread": 0.0,  # zero advantage alone is dropped (stated)
    "filter_own": False,  # local groups are used whole (stated)
    "precision": "fp32",  # float32 (code)
    "sharing": "all",  # everything is shared (stated)
    "selection": "published",  # drop zero-advantage groups, then uniform (stated)
    "adaptive": False,
    "send_log_probs": False,  # decoded text alone (stated)
    "pool.staleness": 0,  # blocking all_gather_object (code)
    "learning.learning_rate": 0.001,  # Adam, learning rate 0.001 (stated)
    "learning.adam_beta1": 0.9,  # default hyper-parameters (stated)
    "learning.adam_beta2": 0.999,  # default hyper-parameters (stated)
    "learning.adam_epsilon": 1e-8,  # default hyper-parameters (stated)
    "learning.weight_decay": 0.0,  # torch.optim.Adam (code)
    "learning.gradient_norm": 0.0,  # backward, then the optimiser's step (code)
    "learning.clip_low": 0.2,  # stated, code
    "learning.clip_high": 0.28,  # stated, code
    "learning.kl": 0.0,  # no reference model (stated, code)
    "learning.inner_steps": 1,  # num_iterations (code)
    "learning.loss": "dapo",  # token mean over the whole batch (code)
    "learning.level": "token",
    "learning.foreign": "as-published",  # no importance correction (code)
}  # fmt: skip

DEMO: dict[str, Any] = {
    **SAPO,
    "nodes": 2,
    "models": ["local:./Qwen2.5-0.5B-Instruct", "local:./Qwen3-0.6B"],  # the pool for small hardware (code)
    "local": 2,  # own questions (code)
    "external": 2,  # foreign groups (code)
    "group": 2,  # completions each (code)
    "steps": 500,  # rounds of the figure
    "seed": 42,  # code
    "reward": "raw",  # the score of the task (code)
    "selection": "uniform",  # without any filter (stated, code)
    "learning.learning_rate": 1e-5,  # GenRL's own config (code)
}


def resolved(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def at(table: dict[str, Any], key: str) -> Any:
    found: Any = table
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def differences(table: dict[str, Any], wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key: (at(table, key), value) for key, value in wanted.items() if at(table, key) != value}


@pytest.mark.parametrize(("switch", "wanted"), [(["--paper"], DEI), (["--preset", "drq"], DRQ)])
def test_a_search_has_the_published_settings(switch: list[str], wanted: dict[str, Any], shoal: Shoal) -> None:
    done = shoal("evolve", *switch, "--dry-run")
    assert (done.code, done.err.splitlines()) == (0, [PROMPTS])
    assert differences(resolved(done.out), wanted) == {}


def test_the_experiment_has_the_published_settings(shoal: Shoal) -> None:
    done = shoal("compare", "--paper", "--dry-run", "--json")
    assert (done.code, done.err.splitlines()) == (0, [PROMPTS])
    arms = {arm["name"]: arm["settings"] for arm in json.loads(done.out)["arms"]}
    models = DEI["models"]
    assert differences(arms["heterogeneous"], DEI) == {}
    homogeneous = [arm for name, arm in arms.items() if name.startswith("homogeneous")]
    assert [arm["models"] for arm in homogeneous] == [[model] * 4 for model in models]
    for arm in homogeneous:
        assert differences(arm, {key: value for key, value in DEI.items() if key != "models"}) == {}
    solo = [arm for name, arm in arms.items() if name.startswith("solo")]
    assert [arm["models"] for arm in solo] == [[model] for model in models]
    for arm in solo:  # 250 solo (stated)
        changed = {"models": arm["models"], "calls_per_round": 250, "calls": 250 * 20}
        assert differences(arm, {**DEI, **changed}) == {}


@pytest.mark.parametrize(("switch", "wanted"), [(["--paper"], SAPO), (["--preset", "sapo-demo"], DEMO)])
def test_a_training_run_has_the_published_settings(
    switch: list[str], wanted: dict[str, Any], shoal: Shoal
) -> None:
    done = shoal("train", *switch, "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert differences(resolved(done.out), wanted) == {}


@pytest.mark.parametrize(
    ("switch", "wanted", "mixes"),
    [
        (["--paper"], SAPO, "8/0,6/2,4/4,2/6"),
        (["--preset", "sapo-demo", "--mix", "4/0,2/2"], DEMO, "4/0,2/2"),
    ],
)
def test_a_sweep_has_the_published_settings(
    switch: list[str], wanted: dict[str, Any], mixes: str, shoal: Shoal
) -> None:
    """Of the demo only the first model: the arms of a sweep are copies of one."""
    done = shoal("sweep", *switch, "--arms", "mix", "--dry-run", "--json")
    assert (done.code, done.err) == (0, "")
    arms = json.loads(done.out)["arms"]
    assert [arm["title"] for arm in arms] == mixes.split(",")
    for arm in arms:
        local, external = map(int, arm["title"].split("/"))
        mix = {"local": local, "external": external, "sharing": "all" if external else "off"}
        changed = {**mix, "models": wanted["models"][:1]}
        published = {name: value for name, value in wanted.items() if name != "seed"}
        assert differences(arm["settings"], {**published, **changed}) == {}


@pytest.mark.parametrize("name", ["sapo", "sapo-demo"])
def test_the_published_tasks_can_be_posed_as_they_are_set(name: str) -> None:
    settings = find_preset(name).settings(TrainSettings, {})
    for task in settings.tasks:
        family = open_task(task, settings.parameters_of(task))
        given = json.loads(json.dumps(RECIPE[task]))
        assert {key: family.parameters[key] for key in given} == given
        for seed in range(20):
            puzzle = family.pose(seed)
            assert puzzle.question
            assert not puzzle.answer or family.score(puzzle, puzzle.answer) >= 0.99, (task, seed)
    numbers = " ".join(
        open_task("basic_arithmetic", RECIPE["basic_arithmetic"]).pose(s).question for s in range(20)
    )
    assert "What is" in numbers


def test_a_run_of_the_paper_may_have_other_tasks(shoal: Shoal) -> None:
    """The settings of the nine rest."""
    done = shoal("train", "--paper", "--tasks", "sums,bf", "--models", "tiny:llama", "--dry-run")
    assert done.code == 0, done.err
    told = done.err.splitlines()
    assert [line.partition(" ")[0] for line in told] == ["models", "tasks", "parameters"]
    assert "binary_matrix: no task of the run is of such a family" in told[-1]
    assert "bf," not in told[-1]


def test_a_solo_arm_has_the_calls_of_all_nodes_where_the_paper_does_not_say(shoal: Shoal) -> None:
    def calls_of_solo(*more: str) -> tuple[set[int], str]:
        done = shoal("compare", "--arms", "solo", *more, "--dry-run", "--json")
        assert done.code == 0, done.err
        return {arm["settings"]["calls"] for arm in json.loads(done.out)["arms"]}, done.err

    two = ("--models", "builtin:bomber,builtin:scanner", "--rounds", "3")
    found, said = calls_of_solo("--paper", *two)
    assert found == {62 * 2 * 3}
    assert (
        "solo arms have as many calls as the nodes of another arm together (published: 250 a round)" in said
    )
    assert calls_of_solo("--paper", *two, "--solo-calls-per-round", "250")[0] == {250 * 3}
    assert calls_of_solo(*two, "--calls-per-round", "5") == ({5 * 2 * 3}, "")
    assert calls_of_solo(*two, "--calls", "31") == ({31}, "")


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_a_preset_is_a_config_that_is_whole_by_itself(preset: Any, tmp_path: Path, shoal: Shoal) -> None:
    printed = shoal("presets", "show", preset.name)
    assert (printed.code, printed.out) == (0, preset.text)
    path = tmp_path / "config.toml"
    path.write_text(printed.out)
    settings = load(SETTINGS[preset.application], path)
    settings.check()
    by_name = shoal(preset.application, "--preset", preset.name, "--dry-run")
    assert by_name.err.splitlines() == ([PROMPTS] if preset.application == "evolve" else [])
    assert shoal(preset.application, path, "--dry-run").out == by_name.out
    assert preset.departures(settings) == by_name.err.splitlines()
    for line in preset.text.splitlines():
        bare = line.strip()
        is_value = " = " in bare and not bare.startswith("#")
        assert not is_value or bare.startswith("application") or "#" in bare, (
            f"{line}: where does it come from?"
        )


def test_presets_are_listed(shoal: Shoal) -> None:
    listed = json.loads(shoal("presets", "--json").out)
    assert {one["name"]: one["application"] for one in listed} == {
        "dei": "evolve", "drq": "evolve", "sapo": "train", "sapo-demo": "train",
    }  # fmt: skip
    assert all(one["title"] and one["about"].endswith(".") for one in listed)
    assert "Diversity in Evolutionary Inference" in shoal("presets").out
    assert {find_preset(name).application: name for name in PAPERS.values()} == PAPERS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evolve", "--preset", "dee"), "no preset is called 'dee': known are dei, drq, sapo, sapo-demo"),
        (("evolve", "--preset", "sapo"), "preset sapo is a set-up of `shoal train`; for `shoal evolve` there are dei, drq"),
        (("compare", "--preset", "sapo"), "for `shoal evolve` there are dei, drq"),
        (("train", "--preset", "dei"), "for `shoal train` there are sapo, sapo-demo"),
        (("sweep", "--preset", "drq"), "for `shoal train` there are sapo, sapo-demo"),
        (("evolve", "--paper", "--preset", "drq"), "--paper is --preset dei: give one of the two"),
        (("train", "--paper", "--preset", "sapo"), "--paper is --preset sapo: give one of the two"),
        (("presets", "show", "nothing"), "no preset is called 'nothing': known are"),
        (("presets", "show"), "give nothing, or `show NAME`"),
        (("evolve", "--calls", "5", "--calls-per-round", "5"), "give one"),
        (("evolve", "--set", "calls=5", "--set", "calls_per_round=5"), "calls and calls_per_round: 5 in all, but 5 for each of 4 nodes in each of 5 rounds make 100: give one of the two"),
        (("evolve", "--calls-per-round", "900000000"), "calls_per_round: they make 18000000000 calls"),
    ],
)  # fmt: skip
def test_mistakes_are_one_clear_line(words: tuple[str, ...], said: str, shoal: Shoal) -> None:
    done = shoal(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_file_and_options_come_on_top_and_are_told(shoal: Shoal, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("rounds = 7\nrepeats = 3\n[options]\ncycles = 800\n")
    done = shoal(
        "evolve", path, "--paper", "--models", "builtin:bomber", "--rounds", 2, "--set", "repeats=4", "--dry-run"
    )  # fmt: skip
    assert done.code == 0, done.err
    found = resolved(done.out)
    # The options table of the file is joined with the preset's.
    assert found["options"] == {
        "core_size": 8000, "cycles": 800, "processes": 8000, "length": 100, "distance": 100,
        "axes": ["spawned", "coverage"], "lenient": False, "brief": False,
        "edges": {"spawned": [1, 10, 100, 1000, 10000], "coverage": [10, 100, 500, 1000, 4000]},
    }  # fmt: skip
    assert (found["rounds"], found["repeats"], found["calls"]) == (2, 4, 62 * 2)
    models = ", ".join(f'"{model}"' for model in DEI["models"])
    assert sorted(done.err.splitlines()) == [
        f'models = ["builtin:bomber"] (published: [{models}])',
        "options.cycles = 800 (published: 80000)",
        PROMPTS,
        "repeats = 4 (published: 20)",
        "rounds = 2 (published: 20)",
    ]


def test_prompts_that_are_given_are_not_called_missing(shoal: Shoal, tmp_path: Path) -> None:
    for part in ("system", "new", "mutate"):
        (tmp_path / f"{part}_prompt_0.txt").write_text("Write a warrior.")
    done = shoal("evolve", "--paper", "--set", f"prompts='{tmp_path}'", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert sorted(resolved(done.out)["prompts"]) == ["mutate", "new", "system"]


def test_a_total_takes_the_place_of_calls_per_round(shoal: Shoal, tmp_path: Path) -> None:
    done = shoal("evolve", "--paper", "--calls", 400, "--dry-run")
    assert done.err.splitlines() == [PROMPTS, "calls = 400 (published: calls_per_round = 62)"]
    stopped = shoal("evolve", "--preset", "drq", "--set", "early_stop=1", "--dry-run")
    assert stopped.err.splitlines()[1:] == ["early_stop = 1.0 (published: early_stop_fitness = 0.8)"]
    assert "early_stop_fitness" not in resolved(stopped.out)
    assert "calls_per_round" not in resolved(done.out)
    path = tmp_path / "mine.toml"
    path.write_text("calls = 300\n")
    found = resolved(shoal("evolve", path, "--calls-per-round", 5, "--dry-run").out)
    assert (found["calls"], found["calls_per_round"]) == (5 * 5 * 4, 5)


def test_drqs_rounds_end_after_their_first_iteration(shoal: Shoal, tmp_path: Path) -> None:
    small = ("--models", "builtin:bomber", "--rounds", 3, "--in-process", "--json")
    small = (*small, *(word for key in ("options.cycles=500", "repeats=2") for word in ("--set", key)))
    done = shoal("evolve", "--preset", "drq", *small, "--out", tmp_path / "a")
    assert json.loads(done.out)["calls"] == 3 * 9
    done = shoal("evolve", "--preset", "drq", *small, "--calls-per-round", 12, "--set", "early_stop=1", "--out", tmp_path / "b")  # fmt: skip
    assert json.loads(done.out)["calls"] == 3 * 12


def test_the_same_from_python() -> None:
    preset = find_preset("dei", "evolve")
    assert preset.settings(EvolveSettings, {}) == parse(EvolveSettings, preset.text)
    given = {"models": "builtin:bomber", "rounds": 2, "options": {"cycles": 800}}
    found = preset.settings(EvolveSettings, given)
    assert (found.models, found.calls, found.look_ahead) == (("builtin:bomber",), 124, 1)
    assert found.options["cycles"] == 800
    assert found.options["distance"] == 100
    assert preset.settings(EvolveSettings, {"calls": 400}).calls == 400
    with pytest.raises(ConfigError, match="Did you mean rounds"):
        preset.settings(EvolveSettings, {"round": 2})
    trained = find_preset("sapo").settings(TrainSettings, {"models": "tiny:llama", "learning": {"kl": 0.1}})
    assert (trained.learning.kl, trained.learning.learning_rate, trained.nodes) == (0.1, 1e-3, 8)


def test_choices_of_our_own_are_replaced_without_a_word(shoal: Shoal) -> None:
    changes = ("held_out=2", "evaluate_every=0", "checkpoint_every=5", "learning.micro_groups=4", "seed=1")
    words = [word for change in changes for word in ("--set", change)]
    assert shoal("train", "--paper", *words, "--dry-run").err == ""
    done = shoal(
        "train", "--preset", "sapo-demo", "--nodes", 5, *words, "--set", "learning.kl=0.1", "--dry-run"
    )
    assert done.err.splitlines() == ["seed = 1 (published: 42)", "learning.kl = 0.1 (published: 0.0)"]

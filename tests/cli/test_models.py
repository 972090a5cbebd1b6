"""`shoal models`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shoal


def test_the_known_models_as_json(shoal: Shoal) -> None:
    done = shoal("models", "--json")
    assert done.code == 0, done.err
    listed = json.loads(done.out)
    assert listed
    for one in listed:
        assert one.keys() >= {"spec", "status", "price", "remedy", "note"}
        assert one["spec"]
        assert one["status"]
    assert "local:smollm2" in {one["spec"] for one in listed}


def test_keys_are_named_and_never_shown(shoal: Shoal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-do-not-print")
    done = shoal("models", "openai:gpt-5-mini", "--json")
    assert done.code == 0, done.err
    assert "do-not-print" not in done.out + done.err
    (one,) = json.loads(done.out)
    assert one["spec"] == "openai:gpt-5-mini"


def test_an_endpoint_where_nothing_listens(shoal: Shoal) -> None:
    (one,) = json.loads(shoal("models", "http://127.0.0.1:9/v1#name", "--json").out)
    assert one["spec"] == "http://127.0.0.1:9/v1#name"
    assert one["status"] != "ready"


def test_people_are_also_told_what_needs_no_model(shoal: Shoal) -> None:
    out = shoal("models").out
    assert "builtin:bomber" in out
    assert "table:small" in out
    assert "tiny:llama" in out


def test_what_is_no_model(shoal: Shoal) -> None:
    done = shoal("models", "gpt-5", "--json")
    assert done.code == 2
    assert "'gpt-5' does not say what kind of model it is" in done.err

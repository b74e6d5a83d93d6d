"""A long session with every strategy, with the real components."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lore.capture.message_capture import message_of
from lore.errors import EvaluationError
from lore.evals import economics
from lore.evals.replay import STRATEGIES
from lore.memory import Memory
from lore.settings import load
from tests.evals.sample_session import write
from tests.fakes import NOON, FakeEmbedder


def test_the_whole_evaluation_runs_and_draws(tmp_path: Path):
    write(tmp_path, turns=3, answers=4, size=600)
    result = economics.run(tmp_path, models=("claude-sonnet-4-5",), cache=tmp_path / "vectors")
    shown = result.as_json()["sessions"]
    assert isinstance(shown, dict)
    found = shown["long-session-harbour"]
    assert list(found) == list(STRATEGIES)
    assert found["full"].keys() == {
        "usd", "tokens_in", "busts", "available", "questions", "available_by",
    }  # fmt: skip
    assert found["gradient_horizon"]["available"] == 1
    assert "long-session-harbour" in result.as_table()
    ET.fromstring(economics.draw(result))


def test_a_captured_session_of_a_home_is_replayed_by_its_name_alone(tmp_path: Path):
    home = tmp_path / "home"
    said = [message_of("user" if n % 2 == 0 else "assistant", f"Part {n}.", NOON) for n in range(8)]
    with Memory.open(config=load({}, home=home).settings, embedder=FakeEmbedder()) as memory:
        memory.capture("talk", said)
    models, cache = ("claude-sonnet-4-5",), tmp_path / "vectors"
    result = economics.run(None, sessions=["talk"], home=home, models=models, cache=cache)
    assert "talk, claude-sonnet-4-5" in result.as_table()
    with pytest.raises(EvaluationError, match="Nothing is named"):
        economics.run(None)


def test_a_folder_without_sessions_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationError, match="no long-session"):
        economics.run(tmp_path)
    with pytest.raises(EvaluationError, match="no folder"):
        economics.run(tmp_path / "gone")


def test_a_broken_file_is_named(tmp_path: Path):
    (tmp_path / "long-session-x.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(EvaluationError, match="long-session-x"):
        economics.run(tmp_path)


def test_a_model_without_a_price_is_refused(tmp_path: Path):
    write(tmp_path, turns=1)
    with pytest.raises(EvaluationError, match="price of nobody"):
        economics.run(tmp_path, models=("nobody-1",))

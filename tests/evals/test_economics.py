"""The economics evaluation and its chart."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lore.errors import EvaluationError
from lore.evals import economics
from lore.evals.replay import STRATEGIES, PromptSize, ReplayOutcome
from lore.memory import Memory
from lore.settings import load
from tests.evals.sample_session import write
from tests.fakes import FakeEmbedder
from tests.transcripts import text_message


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
    said = [text_message("user" if n % 2 == 0 else "assistant", f"Part {n}.") for n in range(8)]
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


def test_broken_file_error_has_its_name(tmp_path: Path):
    (tmp_path / "long-session-x.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(EvaluationError, match="long-session-x"):
        economics.run(tmp_path)


def test_a_model_without_a_price_is_refused(tmp_path: Path):
    write(tmp_path, turns=1)
    with pytest.raises(EvaluationError, match="price of nobody"):
        economics.run(tmp_path, models=("nobody-1",))


def test_a_chart_shows_the_session_its_layers_and_busts():
    sizes = [PromptSize(0.0, n // 7, 100, 1_000 * n, busts=n == 5) for n in range(20)]
    one = ReplayOutcome(usd=1.5, questions=2, available=1, sizes=sizes)
    sessions = {"long <session>": {"full": one, "gradient_horizon": one}}
    result = economics.Result("", {"m": sessions, "n": sessions}, windows={"m": 8_000})
    drawn = ET.fromstring(economics.draw(result))
    told = "".join(drawn.itertext())
    assert "long <session>" in told
    assert "1 of 2" in told
    assert told.count("tokens in the prompt") == 2
    assert told.count("window of the model: 8 K") == 1
    assert sum(one.tag.endswith("line") and one.get("class") == "bust" for one in drawn.iter()) == 2
    bands = [one.text for one in drawn.iter() if one.get("fill") == "#ffffff"]
    assert bands == ["0", "1", "2"] * 2

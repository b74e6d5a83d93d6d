"""Replay of recorded sessions: what is counted, and the source of the figures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lore.errors import EvaluationError
from lore.evals import injection_replay as injection
from lore.evals.datasets import read_links, read_recordings

FINDING = "TokenCache in auth/cache.py keeps expired tokens since get has no TTL check: added one"
PROMPT = "why does TokenCache in auth/cache.py keep expired tokens, and where is the TTL checked?"


def session(name: str, day: int, files: list[str], *said: str, **more: Any) -> dict[str, Any]:
    turns = [
        ["assistant" if i % 2 else "user", text, f"2026-02-{day:02}T10:00:{i:02}Z"]
        for i, text in enumerate(said)
    ]
    created = f"2026-02-{day:02}T10:00:00Z"
    return {"sid": name, "created": created, "files": files, "turns": turns, **more}


def write(folder: Path, *sessions: dict[str, Any]) -> Path:
    with gzip.open(folder / "coding-sessions.jsonl.gz", "wt") as stream:
        stream.write("".join(json.dumps(one) + "\n" for one in sessions))
    return folder


def test_item_of_a_linked_session_is_relevant(tmp_path: Path):
    data = write(
        tmp_path,
        session("a", 1, ["auth/cache.py"], "Mend the login test", FINDING),
        session("b", 2, ["auth/cache.py"], PROMPT, "In get."),
        session("c", 3, ["docs/other.md"], PROMPT, "In get."),
    )
    result = injection.run(data, cache=tmp_path / "cache")
    found = result.figures(0.2)
    assert (result.prompts, result.sessions) == (3, 3)
    assert found.injected == 2
    assert 0 < found.precision < 1
    assert result.chance[0] == pytest.approx(1 / 3)
    assert result.as_json()["threshold"] == 0.6
    assert "0.6*" in result.as_table()


def test_a_higher_threshold_never_injects_into_more_prompts(tmp_path: Path):
    data = write(
        tmp_path,
        session("a", 1, ["x"], "Mend the login test", FINDING, "Is the TTL checked?", "In get"),
        session("b", 2, ["x"], PROMPT, "In get.", "Mend the login test of TokenCache", "Done"),
    )
    result = injection.run(data, cache=tmp_path / "cache")
    told = [result.figures(threshold).injected for threshold in injection.THRESHOLDS]
    assert told == sorted(told, reverse=True)


def test_forked_copies_are_not_replayed(tmp_path: Path):
    first = session("a", 1, ["x"], "Mend the login test", FINDING)
    data = write(tmp_path, first, {**first, "sid": "b"})
    assert injection.run(data, cache=tmp_path / "cache").prompts == 1


def test_sessions_of_one_commit_are_closely_linked(tmp_path: Path):
    data = write(
        tmp_path,
        session("a", 1, [], "x", checkpoints=["1"]),
        session("b", 2, [], "x", checkpoints=["1"]),
        session("c", 3, [], "x"),
    )
    link = read_links(data, read_recordings(data))
    assert link.between("a", "b") == (True, True)
    assert link.between("a", "c") == link.between("a", "unknown") == (False, False)


def test_a_folder_without_sessions_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationError, match="There is no coding-sessions"):
        injection.run(tmp_path)
    (tmp_path / "coding-sessions.jsonl.gz").write_bytes(b"nonsense")
    with pytest.raises(EvaluationError, match="cannot be read"):
        injection.run(tmp_path)
    with pytest.raises(EvaluationError, match="say nothing"):
        injection.run(write(tmp_path))

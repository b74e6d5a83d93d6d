"""The replay of tasks: order of time, equal tokens, and no credit for what is in view."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lore.errors import EvaluationError
from lore.evals import task_eval
from lore.evals.task_eval import TaskStart
from lore.memory import Memory

FIX = "fix the login timeout in the session service please"
ADD = "add a new export button to the report page please"


def _session(sid: str, day: int, prompt: str, file: str, command: str) -> dict[str, object]:
    at = f"2026-01-{day:02}T10:00:0%dZ"
    turns = [
        ["user", prompt, at % 0],
        ["tool", f"Read {file}", at % 1],
        ["result", "package service", at % 2],
        ["tool", f"Edit {file}", at % 3],
        ["result", "ok", at % 4],
        ["tool", f"Bash {command}", at % 5],
        ["result", "ok, 12 passed", at % 6],
        ["assistant", "Done: the timeout is session_ttl_seconds now.", at % 7],
    ]
    return {"sid": sid, "created": at % 0, "agent": "x", "files": [file], "turns": turns}


def _write(folder: Path, *rows: dict[str, object]) -> None:
    with gzip.open(folder / "coding-sessions.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    command = "mise run test:unit"
    _write(
        tmp_path,
        _session("two", 2, FIX, "/app/src/service/login.go", command),
        _session("one", 1, ADD, "/app/src/pages/report.go", command),
        _session("three", 3, FIX + " again", "/app/src/service/login.go", command),
    )
    return tmp_path


def test_arms_are_asked_in_order_of_time_and_know_the_past_only(folder: Path) -> None:
    asked: list[tuple[str, set[str]]] = []

    def spy(memory: Memory, start: TaskStart) -> Sequence[str]:
        asked.append((start.session, {one.external_id for one in memory.sessions()}))
        return []

    task_eval.run(folder, arms={"spy": spy}, cache=folder / "cache")
    assert asked == [("two", {"one"}), ("three", {"one", "two"})]


def test_each_arm_gives_as_many_tokens_as_the_first(folder: Path) -> None:
    short = "Run `mise run test:unit`, see service/login.go."
    arms: dict[str, task_eval.Arm] = {
        "first": lambda _memory, _start: [short],
        "long": lambda _memory, _start: ["word " * 500 + "service/login.go"],
    }
    figures = task_eval.run(folder, arms=arms, cache=folder / "cache").as_json()["projects"]
    rows = figures["coding-sessions"]["arms"]
    assert rows["long"]["tokens"] <= rows["first"]["tokens"]
    assert rows["long"]["used"] == 0
    assert rows["first"]["by_kind"] == {"file": 2, "command": 2, "fix": 0, "decision": 0}
    assert rows["first"]["tasks_helped"] == 1


def test_what_the_prompt_names_is_no_merit(tmp_path: Path) -> None:
    file, command = "/app/src/service/login.go", "mise run test:unit"
    prompt = f"{FIX}, it is in service/login.go, and run {command}"
    _write(
        tmp_path,
        _session("one", 1, ADD, "/app/src/pages/report.go", command),
        _session("two", 2, prompt, file, command),
    )
    arms: dict[str, task_eval.Arm] = {"arm": lambda _memory, _start: [f"{file} {command}"]}
    figures = task_eval.run(tmp_path, arms=arms, cache=tmp_path / "cache").as_json()["projects"]
    assert figures["coding-sessions"]["arms"]["arm"]["used"] == 0


def test_the_baselines_answer_from_earlier_sessions(folder: Path) -> None:
    arms = {"recent sessions": task_eval.recent_sessions, "plain recall": task_eval.plain_recall}
    result = task_eval.run(folder, arms=arms, cache=folder / "cache", samples=2)
    rows = result.as_json()["projects"]["coding-sessions"]["arms"]
    assert rows["recent sessions"]["used"] > 0
    assert "recent sessions" in result.as_table()
    assert "PROMPT" in result.samples[0]


def test_a_copied_turn_of_a_forked_session_is_read_once(tmp_path: Path) -> None:
    row = _session("one", 1, ADD, "/app/a.go", "mise run test:unit")
    _write(tmp_path, row, row | {"sid": "fork"})
    sessions = task_eval.read_sessions(tmp_path / "coding-sessions.jsonl.gz")
    assert [len(messages) for messages in sessions.values()] == [8, 0]


def test_a_folder_without_sessions_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="no coding-sessions"):
        task_eval.run(tmp_path)
    (tmp_path / "coding-sessions.jsonl.gz").write_bytes(b"broken")
    with pytest.raises(EvaluationError, match="cannot be read"):
        task_eval.run(tmp_path, cache=tmp_path / "cache")


def test_cases_for_tuning_say_what_each_memory_would_have_brought(folder: Path) -> None:
    cases = task_eval.collect_cases(folder, cache=folder / "cache")
    assert len(cases) == 2
    gains = {gain for one in cases[-1].candidates for gain in one.gains[200]}
    assert "file service/login.go" in gains

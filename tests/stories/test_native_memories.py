"""What one agent noted reaches the other, and is marked once it no longer holds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from lore.capture.native_files import sanitize
from lore.digest import native_memories
from lore.digest.native_memories import CaptureOptions
from lore.memory import Memory
from lore.records import NativeResult, NewMessage, Part
from tests.fakes import NOON, FixedClock

NOTED = "The orders service stores its data in MySQL 8."
CHANGED = "We switched the orders service from MySQL 8 to Postgres 16."
NOTE = """---
name: orders-db
description: Where the orders service stores its data
metadata:
  node_type: memory
  type: project
---

{text}
"""
MONDAY, TUESDAY = NOON - timedelta(days=2), NOON - timedelta(days=1)


@dataclass
class Week:
    """A project on which a person works with two agents, and one memory for both."""

    memory: Memory
    home: Path
    project: Path

    def note(self, text: str, *, at=MONDAY) -> Path:
        """Let Claude Code note something."""
        folder = self.home / ".claude" / "projects" / sanitize(str(self.project)) / "memory"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "orders-db.md"
        path.write_text(NOTE.format(text=text))
        os.utime(path, (at.timestamp(), at.timestamp()))
        return path

    def read(self) -> NativeResult:
        options = CaptureOptions(self.home, self.memory.redactor)
        result = native_memories.capture_notes(self.memory.database, options)
        self.memory.maintenance.embed_waiting()
        return result

    def say_to_codex(self, text: str) -> None:
        said = [
            NewMessage("user", (Part("text", text),), created_at=TUESDAY),
            NewMessage("assistant", (Part("text", "Understood."),), created_at=TUESDAY),
        ]
        self.memory.capture("codex-1", said, agent="codex", project=str(self.project))
        self.memory.digest(["codex-1"])

    def given_to_codex(self, session: str, prompt: str = "") -> str:
        prompts, project = self.memory.prompts, str(self.project)
        begun = prompts.begin_session(session, project=project, agent="codex").text
        asked = prompts.for_prompt(
            prompt or "Which database does the orders service store its data in?",
            session=session, project=project, agent="codex", threshold=0.0,
        )  # fmt: skip
        return f"{begun}\n{asked.text}"


@pytest.fixture
def week(tmp_path: Path) -> Iterator[Week]:
    home = tmp_path / "person"
    project = home / "code" / "orders"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    with Memory.open(home=tmp_path / "home", now=FixedClock(NOON)) as memory:
        yield Week(memory, home, project)


def test_what_claude_code_noted_on_monday_codex_is_given_on_tuesday(week: Week):
    week.note(NOTED)
    week.read()
    assert NOTED in week.given_to_codex("codex-1")


def test_a_decision_changed_in_codex_marks_the_note_of_claude_code_as_outdated(week: Week):
    path = week.note(NOTED)
    week.read()
    week.say_to_codex(CHANGED)
    (outdated,) = week.memory.native.outdated()
    assert (outdated.agent, outdated.file, outdated.line) == ("claude-code", str(path), 9)
    assert outdated.note.content == NOTED
    assert "Postgres 16" in outdated.newer.text


def test_an_outdated_note_is_not_given_as_current(week: Week):
    week.note(NOTED)
    week.read()
    week.say_to_codex(CHANGED)
    assert NOTED not in week.given_to_codex("codex-2")
    assert "Postgres 16" in week.given_to_codex("codex-3")


def test_a_note_that_was_mended_is_no_longer_listed(week: Week):
    week.note(NOTED)
    week.read()
    week.say_to_codex(CHANGED)
    week.note("The orders service stores its data in Postgres 16.", at=NOON)
    week.read()
    assert week.memory.native.outdated() == []


def test_a_note_that_was_removed_is_no_longer_listed(week: Week):
    path = week.note(NOTED)
    week.read()
    week.say_to_codex(CHANGED)
    path.unlink()
    week.read()
    assert week.memory.native.outdated() == []

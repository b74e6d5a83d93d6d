"""Memories of agents as a person sees them: what is found, read, outdated and shared back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lore.capture.native_files import sanitize
from tests.cli.conftest import Lore

DATABASE = "The orders service stores its data in MySQL 8."


@pytest.fixture
def project(lore: Lore) -> Path:
    folder = lore.home.parent / "code" / "orders"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def notes(lore: Lore, project: Path) -> Path:
    folder = lore.home.parent / ".claude" / "projects" / sanitize(str(project)) / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- [DB](db.md) — which database\n")
    (folder / "db.md").write_text(f"---\nname: db\ndescription: About it\n---\n{DATABASE}\n")
    return folder


def test_setup_status_and_doctor_say_which_memories_agents_have(lore: Lore, notes: Path):
    said = "Claude Code has 1 memory of 1 project; Lore can read them."
    assert said in lore("setup").works().out
    assert said in lore("status").works().out
    lore("remember", "Something.").works()
    assert said in lore("doctor").out
    off = lore("setup", env={"LORE_CAPTURE_NATIVE": "false"}).works().out
    assert "Lore does not read them (capture.native is off)" in off


def test_without_memories_setup_says_nothing_of_them(lore: Lore):
    assert "Lore can read" not in lore("setup").works().out


def test_capture_says_what_it_read_and_a_dry_run_stores_nothing(lore: Lore, notes: Path):
    dry = json.loads(lore("capture", "--all", "--dry-run", "--json").works().out)
    assert dry["native"]["added"] == 1
    assert "1 note in 2 files of agents: 1 new" in lore("capture", "--all").works().out
    assert "notes in" not in lore("capture", "--all").works().out
    assert DATABASE in lore("recall", "which database do orders use?").works().out


def test_a_note_is_shown_with_its_file(lore: Lore, notes: Path):
    lore("capture", "--all").works()
    (found,) = json.loads(lore("search", "orders", "--json").works().out)
    place = f"{notes / 'db.md'}:5 (claude-code)"
    assert f"noted         {place}" in lore("read", found["id"]).works().out
    assert f"a note in {place}" in lore("why", found["id"]).works().out


def test_an_outdated_note_is_listed_with_what_replaced_it(lore: Lore, project: Path, notes: Path):
    lore("capture", "--all").works()
    listed = json.loads(lore("search", "orders", "--json").works().out)
    (old,) = [one["id"] for one in listed if DATABASE in one["text"]]
    words = ("remember", "Orders are in Postgres 16 now.", "--project", str(project), "--json")
    new = json.loads(lore(*words).works().out)["id"]
    lore("supersede", old, new).works()
    shown = lore("conflicts").works().out
    assert f"{notes / 'db.md'}:5 (claude-code)" in shown
    assert "Postgres 16" in shown
    (record,) = json.loads(lore("conflicts", "--json").works().out)
    assert record["type"] == "outdated_note"
    assert record["outdated_in"] == {
        "agent": "claude-code", "file": str(notes / "db.md"), "line": 5,
    }  # fmt: skip
    (notes / "db.md").unlink()
    lore("capture", "--all").works()
    assert "No conflicts." in lore("conflicts").works().out


def test_forgetting_says_that_the_agents_file_still_has_it(lore: Lore, notes: Path):
    lore("capture", "--all").works()
    said = lore("forget", "--match", "MySQL 8", "--yes").works().out
    assert f"{notes / 'db.md'} still has it" in said
    lore("capture", "--all").works()
    assert DATABASE not in lore("recall", "which database do orders use?").out


def test_sharing_is_shown_then_done_then_undone(lore: Lore, project: Path, notes: Path):
    lore("remember", "It takes six minutes.", "--project", str(project)).works()
    words = ("share", "--native", "claude-code", "--project", str(project))
    lore(*words).fails_with(2)
    assert "fact: It takes six minutes." in lore(*words, "--dry-run").works().out
    assert not (notes / "lore.md").exists()
    assert "has 1 fragment of yours" in lore(*words, "--yes").works().out
    assert "Nothing to change" in lore(*words).works().out
    assert "is as it was before" in lore(*words, "--undo", "--yes").works().out
    assert sorted(path.name for path in notes.iterdir()) == ["MEMORY.md", "db.md"]


@pytest.mark.parametrize("words", [("--undo",), ("--native", "codex", "--read"), ("--native", "x")])
def test_options_that_do_not_fit_are_refused(lore: Lore, project: Path, words: tuple[str, ...]):
    lore("remember", "It takes six minutes.", "--project", str(project)).works()
    lore("share", "--project", str(project), *words).fails_with(2)

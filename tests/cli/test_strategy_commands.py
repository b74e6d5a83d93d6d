"""`lore strategy`, and the import and export of a `.loki` folder, as a person sees them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Lore
from tests.tasks.layouts import EXAMPLE, same


def test_profiles_are_listed_and_one_is_chosen(lore: Lore) -> None:
    out = lore("strategy", "list").works().out
    assert "Mode: fixed." in out
    assert "task-types" in out
    assert "100 %" in out
    assert "balanced 100 %" in lore("strategy", "use", "balanced").works().out
    listed = json.loads(lore("strategy", "list", "--json").works().out)
    assert listed["mode"] == "fixed"
    assert {one["name"]: one["share"] for one in listed["profiles"]}["balanced"] == 1


def test_sessions_are_assigned_at_random_when_asked(lore: Lore) -> None:
    out = lore("strategy", "use", "random", "balanced", "task-types").works().out
    assert "balanced 50 %, task-types 50 %" in out
    assert "between 1 and 10" not in out
    assert "at least two" in lore("strategy", "use", "random", "balanced").fails_with(2).err
    assert "'random' and those to compare" in lore("strategy", "use", "a", "b").fails_with(2).err
    assert "no profile 'nothing'" in lore("strategy", "use", "nothing").fails_with(3).err


def test_learning_is_off_until_it_is_switched_on(lore: Lore) -> None:
    assert json.loads(lore("strategy", "report", "--json").works().out)["mode"] == "fixed"
    assert "Learning is on" in lore("strategy", "learn", "on").works().out
    report = json.loads(lore("strategy", "report", "--json").works().out)
    assert report["mode"] == "learn"
    assert sum(one["share"] for one in report["profiles"]) == 1
    assert "20 %" in lore("strategy", "report", "--days").works().out
    assert "Learning is off" in lore("strategy", "learn", "off").works().out
    assert "neither on nor off" in lore("strategy", "learn", "maybe").fails_with(2).err


def test_a_report_without_sessions_says_so(lore: Lore) -> None:
    lore("strategy", "use", "balanced").works()
    said = lore("strategy", "report").works()
    assert "completed" in said.out
    assert "No session has been given a profile yet." in said.err


def test_tuning_without_tasks_says_what_is_missing(lore: Lore, tmp_path: Path) -> None:
    assert "tuning needs 30" in lore("strategy", "tune").fails_with(2).err
    failed = lore("strategy", "tune", "--data", str(tmp_path)).fails_with(10)
    assert "no coding-sessions" in failed.err


def test_a_layout_is_imported_and_exported(lore: Lore, tmp_path: Path) -> None:
    root = tmp_path / "project" / ".loki"
    for path, body in EXAMPLE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(body)
    imported = lore("import", "--from", "loki", str(root), "--trust").works()
    assert "12 records imported, 0 changed, 0 skipped" in imported.out
    assert "memory/skills/notes.md" in imported.err
    again = json.loads(lore("import", "--from", "loki", str(root), "--trust", "--json").works().out)
    assert (again["added"], again["problems"][0]["path"]) == (0, "memory/skills/notes.md")
    copy = tmp_path / "copy"
    lore("export", "--as", "loki", str(copy), "--project", str(root.parent)).works()
    written = copy / ".loki"
    assert all(same((written / path).read_bytes(), body) for path, body in EXAMPLE.items())
    assert "exists already" in lore(
        "export", "--as", "loki", str(copy), "--project", str(root.parent)
    ).fails_with(2).err  # fmt: skip


def test_bad_layouts_and_formats_are_refused(lore: Lore, tmp_path: Path) -> None:
    assert "no folder" in lore("import", "--from", "loki", str(tmp_path / "x")).fails_with(3).err
    assert "neither" in lore("import", "--from", "loki", str(tmp_path)).fails_with(2).err
    lore("remember", "x marks the spot").works()
    assert "is no format" in lore("export", "--as", "yaml", str(tmp_path)).fails_with(2).err
    assert "needs a folder" in lore("export", "--as", "loki").fails_with(2).err
    assert "goes with --as loki" in lore("export", "--project", "x").fails_with(2).err
    assert "Nothing is known" in lore("export", "--as", "loki", str(tmp_path)).fails_with(3).err

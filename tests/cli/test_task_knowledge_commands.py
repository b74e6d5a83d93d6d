"""The commands tasks, learnings and skills."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.settings import Settings
from tests.cli.conftest import Lore
from tests.fakes import FixedClock
from tests.tasks.sessions import do_task, edited, open_tasks, ran

PAGE = "# Skill: Release\n\n## Steps\n\n1. Tag the commit\n2. Run `just publish`\n"
NO_BUN = ran("rtk bun run test", "!Exit code 2\nerror: unrecognized subcommand 'bun'")


@pytest.fixture
def taught(lore: Lore) -> Lore:
    """A memory with two tasks of one project."""
    with Memory.open(config=Settings(home=lore.home, embed_provider="none")) as memory:
        for name in ("dark", "light"):
            steps = [edited("/code/app/web/settings.ts"), NO_BUN, ran("bun run test", "0 fail")]
            do_task(memory, name, f"Add {name} mode to the settings page", steps)
    return lore


def test_tasks_are_consolidated_and_listed(taught: Lore):
    out = taught("tasks", "consolidate", "--since", "24h").works().out
    assert out.startswith("2 episodes: 1 pattern, 1 anti-pattern.")
    assert "Leave out `rtk`" in out
    assert taught("tasks", "consolidate").works().out == "2 episodes: nothing new.\n"
    listed = json.loads(taught("tasks", "lessons", "--json").works().out)
    assert {one["kind"] for one in listed} == {"pattern", "anti_pattern"}
    shown = taught("tasks", "lessons", "--kind", "pattern").works().out
    assert "Tasks like “Add dark mode" in shown
    taught("tasks", "lessons", "--kind", "fact").fails_with(2)
    taught("tasks", "consolidate", "--since", "24 bananas").fails_with(2)
    taught("tasks", "consolidate", "--project", "nowhere").fails_with(3)


def test_the_result_of_a_consolidation_is_json(taught: Lore):
    result = json.loads(taught("tasks", "consolidate", "--json").works().out)
    assert (result["episodes"], len(result["patterns"])) == (2, 1)


def test_review_retention_and_archive_say_so_when_there_is_nothing(taught: Lore):
    assert "Nothing to review" in taught("tasks", "review").works().out
    assert json.loads(taught("tasks", "review", "--json").works().out) == []
    assert "0 episodes would be summarized" in taught("tasks", "retain", "--dry-run").works().out
    assert taught("tasks", "archived").works().out == "No episode is archived.\n"
    assert json.loads(taught("tasks", "archived", "x", "--json").works().out) == []


def test_unused_lessons_are_listed_with_the_reason(lore: Lore):
    clock = FixedClock()
    with open_tasks(lore.home, clock) as memory:
        memory.store("Always rebase first", kind="pattern")
    assert "not used for" in lore("tasks", "review").works().out


def test_learnings_are_listed_by_day(taught: Lore):
    out = taught("learnings").works().out
    assert "  error: unrecognized subcommand 'bun'\n    → bun run test" in out
    assert "'--since 365d' looks" in taught("learnings", "--since", "2199-01-01").works().out
    assert "bun run test" in taught("learnings", "--since", "365d").works().out
    (first, *_) = json.loads(taught("learnings", "--json").works().out)
    assert first["resolution"] == "bun run test"


def test_skills_are_added_from_markdown_listed_and_shown(lore: Lore, tmp_path: Path):
    page = tmp_path / "release.md"
    page.write_text(PAGE)
    assert "There are no skills" in lore("skills", "list").works().out
    assert (
        "Stored the skill 'Release'" in lore("skills", "add", str(page), "--everywhere").works().out
    )
    lore("skills", "add", "-", "--everywhere", stdin=PAGE.encode()).works()
    (only,) = json.loads(lore("skills", "list", "--json").works().out)
    assert only["payload"]["steps"] == ["Tag the commit", "Run `just publish`"]
    assert lore("skills", "show", "Release").works().out == PAGE
    assert json.loads(lore("skills", "show", only["id"], "--json").works().out) == {"page": PAGE}


def test_one_undo_brings_the_former_version_of_a_skill_back(lore: Lore):
    lore("skills", "add", "-", "--everywhere", stdin=PAGE.encode()).works()
    newer = PAGE.replace("Release", "release") + "\n3. Tell everyone\n"
    lore("skills", "add", "-", "--everywhere", stdin=newer.encode()).works()
    lore("undo").works()
    (only,) = json.loads(lore("skills", "list", "--json").works().out)
    assert lore("skills", "show", only["id"]).works().out == PAGE
    lore("undo", "--redo").works()
    (only,) = json.loads(lore("skills", "list", "--json").works().out)
    assert "Tell everyone" in lore("skills", "show", only["id"]).works().out


def test_what_is_no_skill_is_refused(lore: Lore, tmp_path: Path):
    lore("skills", "add", str(tmp_path / "missing.md")).fails_with(3)
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe\x00")
    lore("skills", "add", str(tmp_path / "bytes.md")).fails_with(2)
    lore("skills", "add", "-", stdin=b"# Skill: Release\n").fails_with(2)
    lore("skills", "add", "-", "--everywhere", "--project", "x", stdin=b"x").fails_with(2)
    lore("skills", "add", "-", "--everywhere", stdin=PAGE.encode()).works()
    lore("skills", "show", "ffffffff").fails_with(3)

"""Commands about work in progress: the group handoff, and continuity."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Part, Role
from lore.settings import load
from tests.cli.conftest import Lore
from tests.fakes import NOON


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "almanac"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def worked(lore: Lore, project: Path) -> Lore:
    """Return the command line on a memory with a session that left work open."""
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    texts = (("user", "Print the almanac."), ("assistant", "Next steps:\n- Bind it\n- Sell it"))
    with Memory.open(config=config) as memory:
        said = [NewMessage(role, (Part("text", text),), NOON) for role, text in texts]  # type: ignore[arg-type]
        memory.capture("one", said, agent="claude-code", project=str(project))
        memory.handoffs.update("one")
    return lore


def test_the_state_of_a_session_is_shown(worked: Lore):
    out = worked("handoff", "state", "one").works().out
    assert "Task:\n   Print the almanac." in out
    assert "Next:\n   Bind it\n   Sell it" in out
    told = json.loads(worked("handoff", "state", "one", "--json").works().out)
    assert told["next"] == ["Bind it", "Sell it"]


def test_an_unknown_session_has_no_state(worked: Lore):
    assert worked("handoff", "state", "nobody").code != 0


def test_a_handoff_is_written_listed_and_taken_over(worked: Lore, project: Path):
    here = ("--project", str(project))
    worked("handoff", "write", "Printed it.", "--to", "codex", "--next-step", "Bind it",
           "--issue", "No glue", *here).works()  # fmt: skip
    [listed] = json.loads(worked("handoff", "list", "--json", *here).works().out)
    assert (listed["to_agent"], listed["next"]) == ("codex", ["Bind it"])
    assert "waiting" in worked("handoff", "list", *here).works().out
    out = worked("handoff", "read", *here).works().out
    assert "Known issues:\n   No glue" in out
    assert "taken over" in worked("handoff", "list", *here).works().out
    assert "no unread handoff" in worked("handoff", "read", *here).err


def test_a_checkpoint_is_recorded_and_listed(worked: Lore, project: Path):
    here = ("--project", str(project))
    assert "No agent has a checkpoint" in worked("handoff", "checkpoint", *here).works().out
    worked("handoff", "checkpoint", "qa-001", "--session", "one", "--task", "glue", *here).works()
    [ledger] = json.loads(worked("handoff", "checkpoint", "--json", *here).works().out)
    assert (ledger["agent_id"], ledger["current_task"]) == ("qa-001", "glue")
    assert ledger["current_goal"] == "Print the almanac."


def test_the_page_of_imported_sessions_has_the_latest_task(lore: Lore, project: Path):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    with Memory.open(config=config) as memory:
        for day, text in ((1, "Print the almanac."), (2, "Bind the almanac."), (3, "")):
            role: Role = "user" if text else "assistant"
            at = datetime(2025, 1, day, tzinfo=UTC)
            said = NewMessage(role, (Part("text", text or "Hello."),), at)
            memory.capture(f"old-{day}", [said], agent="claude-code", project=str(project))
    lore("continuity", "--project", str(project)).works()
    assert "- Bind the almanac." in (project / "CONTINUITY.md").read_text()


def test_the_page_is_written_and_read_back(worked: Lore, project: Path):
    here = ("--project", str(project))
    worked("continuity", *here).works()
    file = project / "CONTINUITY.md"
    file.write_text(file.read_text().replace("- Sell it", "- Give it away"))
    shown = worked("continuity", "--read", "--dry-run", *here).works().out
    assert "-Sell it" in shown
    assert "+Give it away" in shown
    refused = worked("continuity", "--read", *here)
    assert "2 changes would be taken in" in refused.err
    worked("continuity", "--read", "--yes", *here).works()
    assert json.loads(worked("handoff", "state", "one", "--json").works().out)["next"] == [
        "Give it away", "Bind it",
    ]  # fmt: skip
    assert "Nobody has changed the page" in worked("continuity", "--read", *here).works().out


def test_metrics_say_that_there_are_none(worked: Lore, project: Path):
    out = worked("handoff", "metrics", "--project", str(project)).works().out
    assert "No task has ended" in out
    told = json.loads(worked("handoff", "metrics", "--all", "--json").works().out)
    assert told["tasks"] == 0


def test_folders_without_a_repository_are_projects_of_their_own(
    lore: Lore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    monkeypatch.chdir(one)
    lore("handoff", "write", "Counted the gulls.").works()
    lore("handoff", "checkpoint", "qa").works()
    for elsewhere in (other, tmp_path):
        monkeypatch.chdir(elsewhere)
        assert json.loads(lore("handoff", "list", "--json").works().out) == []
        assert "no unread handoff" in lore("handoff", "read").err
        assert json.loads(lore("handoff", "checkpoint", "--json").works().out) == []
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    with Memory.open(config=config) as memory:
        assert "gulls" in memory.prompts.begin_session("new", project=str(one)).text
        assert "gulls" not in memory.prompts.begin_session("new2", project=str(other)).text
    monkeypatch.chdir(one)
    assert "Counted the gulls." in lore("handoff", "read").works().out


def test_forget_tells_what_it_takes_from_task_memory(worked: Lore, project: Path):
    here = ("--project", str(project))
    worked("handoff", "write", "Fed the numbat.", *here).works()
    assert "--yes" in worked("forget", "--match", "numbat").fails_with(2).err
    told = worked("forget", "--match", "numbat", "--dry-run").works().out
    assert "1 handoff would be deleted for good" in told
    as_json = worked("forget", "--match", "numbat", "--dry-run", "--json").works().out
    assert json.loads(as_json)["task_records"] == [
        {"record": "handoff", "deleted": 1, "changed": 0}
    ]
    told = worked("forget", "--match", "numbat", "--yes").works().out
    assert "Task memory: 1 handoff deleted for good." in told
    assert "Nothing contains" not in told
    assert json.loads(worked("handoff", "list", "--json", *here).works().out) == []

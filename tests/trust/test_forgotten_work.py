"""What was forgotten in task memory comes back through no folder, export or backup."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory, restore_backup
from tests.store.samples import new_message

WORD = "Numbat"


def opened(home: Path) -> Memory:
    return Memory.open(home=home, embedder=NoEmbedder())


def fill(memory: Memory, project: Path) -> None:
    """Import a folder, and write a handoff, a ledger and a task; each says the word."""
    files = {
        "memory/handoffs/h1.json": {"id": "h1", "from_agent": "a", "to_agent": "b",
                                    "context": {"what": f"Fed the {WORD}"}},
        "memory/ledgers/a.json": {"agent_id": "a", "current_task": f"feed the {WORD}"},
        "memory/timeline.json": {"events": [{"what": f"the {WORD}"}, {"what": "the emu"}]},
    }  # fmt: skip
    for path, value in files.items():
        file = project / ".loki" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    memory.layout.import_folder(project, trust=True)
    memory.handoffs.write(what_was_done=f"Washed the {WORD}.", project=str(project))
    memory.handoffs.checkpoint(agent="x", project=str(project), current_task=f"comb the {WORD}")
    memory.tasks.start(f"house the {WORD}", project=str(project))


def said(memory: Memory, tmp_path: Path) -> str:
    """Return everything that is stored."""
    target = tmp_path / "all.jsonl"
    target.unlink(missing_ok=True)
    memory.sessions.export(target)
    return target.read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    return folder


def test_a_folder_brings_nothing_back(tmp_path: Path, project: Path) -> None:
    with opened(tmp_path / "home") as memory:
        fill(memory, project)
        memory.layout.export_folder(tmp_path / "copy", project=str(project))
        memory.forget(match=WORD)
        again = memory.layout.import_folder(project, trust=True)
        assert (again.forgotten, again.files) == (3, 0)  # two records, and what a file loses
        (project / ".loki").rename(tmp_path / "former")
        (tmp_path / "copy" / ".loki").rename(project / ".loki")
        memory.layout.import_folder(project, trust=True)
        assert memory.handoffs.recent(project=str(project)) == []
        assert WORD not in said(memory, tmp_path)
        assert "the emu" in said(memory, tmp_path)


def test_an_older_export_brings_nothing_back(tmp_path: Path, project: Path) -> None:
    with opened(tmp_path / "home") as memory:
        fill(memory, project)
        lines = said(memory, tmp_path).encode().splitlines()
        memory.forget(match=WORD)
        memory.sessions.import_lines(lines, trust=True)
        assert WORD not in said(memory, tmp_path)
        assert "the emu" in said(memory, tmp_path)


def test_an_export_takes_along_what_was_forgotten(tmp_path: Path, project: Path) -> None:
    with opened(tmp_path / "home") as memory, opened(tmp_path / "other") as other:
        fill(memory, project)
        other.sessions.import_lines(said(memory, tmp_path).encode().splitlines(), trust=True)
        memory.forget(match=WORD)
        other.sessions.import_lines(said(memory, tmp_path).encode().splitlines(), trust=True)
        assert WORD not in said(other, tmp_path)
        assert "the emu" in said(other, tmp_path)


def test_a_backup_brings_nothing_back(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    with opened(home) as memory:
        fill(memory, project)
        copy = memory.maintenance.backup(tmp_path / "copy.db")
        memory.forget(match=WORD)
    restore_backup(copy, home=home)
    with opened(home) as memory:
        assert WORD not in said(memory, tmp_path)
        assert "the emu" in said(memory, tmp_path)


def test_the_handoffs_of_a_forgotten_session_stay_forgotten(tmp_path: Path, project: Path) -> None:
    with opened(tmp_path / "home") as memory:
        memory.capture("talk", [new_message("feed it", 0, key="0")], project=str(project))
        memory.handoffs.write(what_was_done="Fed it.", session="talk", project=str(project))
        memory.layout.export_folder(project, project=str(project))
        memory.forget(session="talk")
        memory.layout.import_folder(project, trust=True)
        assert memory.handoffs.recent(project=str(project)) == []

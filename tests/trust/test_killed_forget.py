"""A forget that is killed: the text is in no file of an agent, and the rest is finished later."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.capture.native_files import sanitize
from lore.daemon.periodic_tasks import periodic_tasks
from lore.digest import native_share
from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.store.samples import NOON, open_memory
from tests.trust.test_forgetting import traces

pytestmark = pytest.mark.only_sqlite("bytes in the files of a home")

ROOT = Path(__file__).parents[2]
DIES_AFTER_THE_COMMIT = """
import os, sys
from pathlib import Path

from tests.store.samples import open_memory

with open_memory(Path(sys.argv[1])) as memory:
    memory.database.write(lambda db: db.raw.set_wal_hook(lambda *_: os._exit(9)))
    memory.forget(id=sys.argv[2])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project in a person's home."""
    folder = tmp_path / "person" / "code" / "harbor"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty memory."""
    with open_memory(tmp_path / "home") as opened:
        yield opened


def fill(memory: Memory, person: Path, project: Path) -> tuple[str, list[Path]]:
    """Write a fragment into each file that shows knowledge; return its id and the files."""
    id_ = memory.remember(
        "Never dredge where zebrafish are.", project=str(project), kind="anti_pattern"
    ).id
    page = project / ".lore.md"
    memory.knowledge.share(memory.knowledge.plan_share(str(project), page), page)
    notes = person / ".claude" / "projects" / sanitize(str(project)) / "memory"
    notes.mkdir(parents=True)
    (notes / "MEMORY.md").write_text("")
    with memory.database.read() as db:
        plan = native_share.plan_share(db, "claude-code", person, str(project), str(project))
    native_share.apply(plan)
    said = NewMessage("user", (Part("text", "Plan the harbor."),), NOON, key="said")
    memory.capture("talk", [said], agent="codex", project=str(project))
    memory.handoffs.catch_up(project=str(project))
    continuity = memory.continuity.write(str(project), force=True)
    assert continuity is not None
    memory.maintenance.backup()
    return id_, [page, notes / "lore.md", continuity]


def test_a_kill_after_the_deletion_leaves_the_text_in_no_file(
    memory: Memory, tmp_path: Path, project: Path
) -> None:
    id_, files = fill(memory, tmp_path / "person", project)
    assert all(b"zebrafish" in file.read_bytes() for file in files)
    killed = subprocess.run(
        [sys.executable, "-c", DIES_AFTER_THE_COMMIT, str(memory.settings.home), id_],
        env={**os.environ, "HOME": str(tmp_path / "person")},
        cwd=ROOT,
        check=False,
    )
    assert killed.returncode == 9
    page, notes, continuity = (file.read_bytes() for file in files)
    assert b"zebrafish" not in page + notes
    assert b"zebrafish" in continuity
    assert memory.forget(id=id_) == []
    (upkeep,) = (task for task in periodic_tasks(memory.settings) if task.name == "upkeep")
    upkeep.run(memory, lambda: False)
    assert traces(tmp_path, b"zebrafish") == []


def test_a_forget_that_ends_leaves_nothing_to_be_finished(
    memory: Memory, tmp_path: Path, project: Path
) -> None:
    fill(memory, tmp_path / "person", project)
    memory.forget(project=str(project))
    with memory.database.read() as db:
        assert (
            db.column("SELECT key FROM meta WHERE key IN ('sync_deleted', 'sync_stale_pages')")
            == []
        )
    assert traces(memory.settings.home, b"zebrafish", b"code/harbor") == []

"""SIGKILL at any instant, and many processes at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import StoreReadOnly
from lore.memory import Memory
from lore.store import database

KILLS = int(os.environ.get("LORE_TEST_KILLS", "1000"))


def crowd(*arguments: object) -> dict[str, Any]:
    """Run processes at once and return their report."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.crowd", *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    sys.stderr.write(done.stderr.decode()[-9_000:])  # what workers said, if the test fails
    assert done.returncode == 0
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("seed", [1, 2])
def test_no_acknowledged_write_is_lost_when_processes_are_killed_at_any_instant(
    tmp_path: Path, seed: int
) -> None:
    report = crowd("kill", tmp_path / "home", KILLS // 2, seed)
    assert report["problems"] == []
    assert report["kills"] >= KILLS // 2
    assert report["acknowledged"] > KILLS / 20, "too few writes to say anything"


@pytest.mark.parametrize(("processes", "each"), [(2, 60), (8, 25)])
def test_processes_that_write_and_read_at_once_lose_nothing_and_see_no_lock(
    tmp_path: Path, processes: int, each: int
) -> None:
    report = crowd("contend", tmp_path / "home", processes, each)
    assert report == {"failed": 0, "lost": 0, "doubled": 0, "problems": []}


def test_eight_processes_open_an_empty_home_at_the_same_moment(tmp_path: Path) -> None:
    for attempt in range(3):
        report = crowd("contend", tmp_path / f"home{attempt}", 8, 1)
        assert report == {"failed": 0, "lost": 0, "doubled": 0, "problems": []}


DYING = """
import apsw, os, sys
db = apsw.Connection(sys.argv[1])
db.execute("PRAGMA journal_mode = delete; PRAGMA cache_size = 1; BEGIN IMMEDIATE").fetchall()
db.execute("CREATE TABLE half_done (bytes)")
for _ in range(500):
    db.execute("INSERT INTO half_done VALUES (randomblob(2000))")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("is_new", [True, False])
def test_a_database_opens_after_a_kill_without_wal(tmp_path: Path, is_new: bool) -> None:
    """A new file has a rollback journal until it is in WAL mode, and always on a shared disk."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "memory.db"
    path.touch(mode=0o600)
    if not is_new:
        path.unlink()
        with Memory.open(home=home, embedder=NoEmbedder()) as memory:
            memory.store("a fact from before")
    done = subprocess.run([sys.executable, "-c", DYING, str(path)], check=False)
    assert done.returncode == -9
    assert path.stat().st_size > 500_000
    assert (home / "memory.db-journal").stat().st_size
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        memory.store("a later fact")
        facts = [one.content for one in memory.knowledge.page_of_fragments().items]
        with memory.database.read() as db:
            assert not db.find("SELECT 1 FROM sqlite_schema WHERE name = 'half_done'")
    assert sorted(facts) == [*([] if is_new else ["a fact from before"]), "a later fact"]


def test_a_database_of_another_program_is_not_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    subprocess.run([sys.executable, "-c", DYING, str(path)], check=False)
    before = path.read_bytes()
    with pytest.raises(StoreReadOnly), database.open_external(path):
        pass
    assert path.read_bytes() == before
    assert (tmp_path / "other.db-journal").stat().st_size

"""Full disks and I/O errors: a clear error, reads go on, nothing is damaged, writes resume."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from lore.errors import StoreError, StoreFull
from lore.store import maintenance, sqlite
from tests.store.samples import add_messages, empty_log, new_session, open_at, open_memory
from tests.trust.test_power import write
from tests.trust.unreliable import Disk, UnreliableVFS, load, save


def io_error() -> BaseException:
    return apsw.IOError("disk I/O error")


@pytest.mark.parametrize(
    ("name", "fault", "expected"),
    [("full", lambda: apsw.FullError("full"), StoreFull), ("broken", io_error, StoreError)],
)
def test_an_error_of_the_disk_at_any_operation_is_clear_and_damages_nothing(
    tmp_path: Path, name: str, fault: Callable[[], BaseException], expected: type[StoreError]
) -> None:
    home = tmp_path / "home"
    database = open_at(home)
    database.write(lambda db: add_messages(db, new_session(db), *(f"hello {i}" for i in range(30))))
    empty_log(database)
    database.close()
    before = load(home)
    disk = Disk()
    disk.fault, disk.keeps_failing = fault, False
    vfs = UnreliableVFS(name, disk)
    failures = 0
    for k in range(1, 90, 2):
        save(before, home)
        disk.operations, disk.fails_at = 0, None
        db = sqlite.open_connection(
            home / "memory.db", busy_timeout_s=1, read_only=False, vfs=vfs.name
        )
        db.rows("PRAGMA wal_autocheckpoint = 8")
        disk.fails_at = disk.operations + k
        acknowledged = 0
        while acknowledged < 6:
            try:
                write(db, acknowledged)
            except expected:
                failures += 1
                assert db.value("SELECT count(*) FROM messages") >= 30 + acknowledged
                # A keyed write whose end is not known is simply made again.
                write(db, acknowledged)
            acknowledged += 1
        assert db.value("SELECT count(*) FROM fragments") == 6
        db.close()
        plain = sqlite.open_connection(home / "memory.db", busy_timeout_s=1, read_only=False)
        assert maintenance.check_integrity(plain) == []
        assert maintenance.compare_keyword_index(plain) == []
        plain.close()
    assert failures > 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a file system cannot be mounted here: this needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_full_disk_writes_fail_clearly_reads_go_on_and_writes_resume(
    small_disk: Path,
) -> None:
    filler = small_disk / "filler"
    with open_memory(small_disk / "home") as memory:
        first = memory.store("the first thing, about zebras")
        space = os.statvfs(small_disk)
        filler.write_bytes(b"x" * (space.f_bavail * space.f_frsize))
        for i in range(5):
            with pytest.raises(StoreFull, match="No space left"):
                memory.store(f"thing {i} " + "that is long " * 3_000, key=f"thing {i}")
        assert [reading.id for reading in memory.read([first], reinforce=False)] == [first]
        assert memory.search("zebras", log=False)[0].id == first
        filler.unlink()
        ids = [memory.store(f"thing {i}", key=f"thing {i}") for i in range(5)]
        assert len(set(ids)) == 5
        with memory.database.read() as db:
            assert maintenance.check_integrity(db) == []
        assert memory.database.write(maintenance.compare_keyword_index) == []


LIMITED = """
import json, resource, sys
from pathlib import Path
from lore.errors import LoreError
from tests.store.samples import open_memory
with open_memory(Path(sys.argv[1])) as memory:
    memory.store("the first thing")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
    errors = []
    for i in range(40):
        try:
            memory.store("long " * 20_000 + str(i))
        except LoreError as error:
            errors.append(type(error).__name__)
    reads = len(memory.search("first", log=False))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    memory.store("the last thing")
print(json.dumps([sorted(set(errors)), reads]))
"""


def test_a_limit_on_the_size_of_files_is_told_as_a_full_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "home")],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    assert json.loads(done.stdout) == [["StoreFull"], 1]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    with open_memory(tmp_path / "home") as memory, memory.database.read() as db:
        assert maintenance.check_integrity(db) == []
        assert db.value("SELECT content FROM fragments ORDER BY n DESC") == "the last thing"

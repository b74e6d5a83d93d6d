"""Files: who may read them, where they may lie, and what is done with damaged ones."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.errors import LoreError, StoreDamaged, StoreError, StoreReadOnly
from lore.memory import Memory
from lore.store import maintenance, sqlite
from tests.store.samples import new_message, open_at, open_memory

ROOT = Path(__file__).parents[2]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """A mask for new files, of the generous and of the odd kind."""
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def test_only_the_owner_may_read_anything_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        memory.store("something private")
        memory.maintenance.backup()
        memory.sessions.export(tmp_path / "export.jsonl")
        modes = {path.name: mode(path) for path in [home, *home.iterdir()]}
        backup = next((home / "backups").iterdir())
        assert mode(backup) == 0o600
        assert mode(tmp_path / "export.jsonl") == 0o600
    files = {name: found for name, found in modes.items() if name.startswith("memory.db")}
    assert files == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert modes["home"] == 0o700
    if umask != 0o277:
        assert modes["backups"] == 0o700


def test_folders_above_a_new_home_are_private_too(tmp_path: Path) -> None:
    open_at(tmp_path / "a" / "b").close()
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700


def test_a_database_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    open_at(tmp_path / "real").close()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memory.db").symlink_to(tmp_path / "real" / "memory.db")
    with pytest.raises(StoreError, match="symbolic link"):
        open_at(tmp_path / "home")


def test_a_dangling_symbolic_link_is_refused_and_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memory.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StoreError, match="symbolic link"):
        open_at(tmp_path / "home")
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_home_below_a_symbolic_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    open_at(tmp_path / "link" / "home").close()
    assert (tmp_path / "real" / "home" / "memory.db").is_file()


def test_a_folder_in_the_place_of_the_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    with pytest.raises(StoreError, match="folder"):
        open_at(tmp_path)


def test_a_file_in_the_place_of_the_home_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("I am a file")
    with pytest.raises(StoreError):
        open_at(tmp_path / "home")


READING = """
import json, os, sys
from pathlib import Path
from lore.errors import LoreError
from tests.store.samples import open_memory
home = Path(sys.argv[1])
with open_memory(home.with_name(home.name + "-warm")) as memory:  # imports what is imported late
    memory.store("a note")
    memory.search("zebras")
os.setgid(65534); os.setuid(65534)
with open_memory(home) as memory:
    found = [hit.text for hit in memory.search("zebras", log=False)]
    try:
        memory.store("more")
        told = ""
    except LoreError as error:
        told = type(error).__name__
print(json.dumps([found, told, sorted(p.name for p in home.iterdir())]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("folder_mode", [0o755, 0o777])
def test_a_home_that_may_only_be_read_serves_and_refuses_writes(folder_mode: int) -> None:
    # Not below pytest's own folder, which other users may not enter.
    home = Path(f"/tmp/lore-readable-{os.getpid()}-{folder_mode}")
    try:
        with open_memory(home) as memory:
            memory.store("a note about zebras")
        home.chmod(folder_mode)
        (home / "memory.db").chmod(0o644)
        done = subprocess.run(
            [sys.executable, "-c", READING, str(home)],
            capture_output=True,
            check=False,
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stderr.decode()[-2_000:]
        found, told, _ = json.loads(done.stdout)
        assert (len(found), told) == (1, "StoreReadOnly")
    finally:
        for leftover in (home, home.with_name(home.name + "-warm")):
            shutil.rmtree(leftover, ignore_errors=True)


def test_a_log_that_a_crash_left_is_read_with_its_database(tmp_path: Path) -> None:
    with open_memory(tmp_path / "home") as memory:
        memory.store("a note")
        content = (tmp_path / "home" / "memory.db").read_bytes()
        log = (tmp_path / "home" / "memory.db-wal").read_bytes()
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    (frozen / "memory.db").write_bytes(content)
    (frozen / "memory.db-wal").write_bytes(log)
    with open_memory(frozen) as memory:
        assert memory.maintenance.stats().fragments == 1


def fill(home: Path) -> None:
    with open_memory(home) as memory:
        for i in range(30):
            memory.store(f"fact {i} about topic{i % 5} " + "and so on " * 20)
        memory.capture("talk", [new_message(f"message {i}", i) for i in range(60)])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound database."""
    home = tmp_path_factory.mktemp("sound")
    fill(home)
    return home / "memory.db"


def use(home: Path) -> None:
    """Open and use a memory in every way that reads, and in one that writes."""
    with open_memory(home) as memory:
        for action in (
            memory.maintenance.stats,
            lambda: memory.search("topic3", log=False),
            lambda: memory.recall("message", log=False),
            lambda: memory.sessions.messages("talk"),
            lambda: _examine(memory),
            lambda: memory.store("one more"),
        ):
            try:
                action()
            except LoreError:
                continue


def _examine(memory: Memory) -> None:
    with memory.database.read() as db:
        maintenance.check_integrity(db)
        maintenance.compare_keyword_index(db)


@settings(
    max_examples=80,
    derandomize=True,  # damage without end could be tried: CI tries the same each time
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), wounds=st.integers(1, 60), longest=st.integers(1, 3_000))
def test_a_damaged_database_never_raises_anything_but_a_clear_error(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, wounds: int, longest: int
) -> None:
    rng = random.Random(seed)
    content = bytearray(sound.read_bytes())
    for _ in range(wounds):
        start = rng.randrange(len(content))
        length = rng.randint(1, longest)
        content[start : start + length] = rng.randbytes(length)
    home = tmp_path_factory.mktemp("damaged")
    (home / "memory.db").write_bytes(content)
    with suppress(StoreError):
        use(home)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.97])
def test_a_truncated_database_never_raises_anything_but_a_clear_error(
    sound: Path, tmp_path: Path, share: float
) -> None:
    content = sound.read_bytes()
    (tmp_path / "memory.db").write_bytes(content[: int(len(content) * share)])
    with suppress(StoreError):
        use(tmp_path)


def test_damage_in_the_schema_is_told_and_nothing_is_written(sound: Path, tmp_path: Path) -> None:
    content = bytearray(sound.read_bytes())
    content[100:4096] = b"\xff" * 3996
    (tmp_path / "memory.db").write_bytes(content)
    with pytest.raises(StoreDamaged):
        open_at(tmp_path)
    assert (tmp_path / "memory.db").read_bytes() == content


def test_damage_in_a_table_is_named_and_the_rest_can_be_read(sound: Path, tmp_path: Path) -> None:
    plain = sqlite.open_connection(sound, busy_timeout_s=1, read_only=True)
    pages = plain.rows("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'")
    plain.close()
    content = bytearray(sound.read_bytes())
    for (page,) in pages:
        content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    (tmp_path / "memory.db").write_bytes(content)
    with open_memory(tmp_path) as memory:
        with memory.database.read() as db:
            assert maintenance.check_integrity(db)
        assert memory.search("topic3", log=False)
        with pytest.raises(StoreDamaged):
            memory.sessions.messages("talk")


def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path) -> None:
    text = b"Dear diary, today I am not a database. " * 200
    (tmp_path / "memory.db").write_bytes(text)
    with pytest.raises(StoreDamaged, match="not a database"):
        open_at(tmp_path)
    assert (tmp_path / "memory.db").read_bytes() == text


def test_a_database_of_another_program_is_told_and_left_alone(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "memory.db"))
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    before = (tmp_path / "memory.db").read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        open_at(tmp_path)
    assert (tmp_path / "memory.db").read_bytes() == before


def test_a_file_of_no_bytes_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    with open_memory(tmp_path) as memory:
        assert memory.maintenance.stats().messages == 0


def test_a_database_that_is_missing_cannot_be_opened_for_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreReadOnly, match="no database"):
        sqlite.open_connection(tmp_path / "no.db", busy_timeout_s=1, read_only=True)

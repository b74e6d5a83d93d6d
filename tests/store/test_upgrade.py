"""A memory is upgraded by a newer Lore while processes of an older one use it.

The older program is the one of this tree, in a process of its own. The newer one has a migration
more.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lore.errors import SchemaTooNew
from lore.store import migrations, sqlite
from lore.store.database import Database, open_database
from lore.store.migrations import MIGRATIONS, Migration, additive
from lore.store.sql_connection import Connection
from tests.store.older_program import open_it
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
ENOUGH = 20
"""Rows that the older program writes before and after an upgrade."""


@additive
def m900_adds(db: Connection) -> None:
    """Add what an older program does not need to know."""
    db.rows("CREATE TABLE later (n INTEGER PRIMARY KEY, note TEXT NOT NULL)")
    db.rows("ALTER TABLE speakers ADD COLUMN uses INTEGER NOT NULL DEFAULT 0")
    db.insert("later", n=1, note="once")


def m901_changes(db: Connection) -> None:
    """Store names in another form, which an older program would not write."""
    db.run("UPDATE speakers SET name = upper(name)")


ADDITIVE: tuple[Migration, ...] = (*MIGRATIONS, m900_adds)
BREAKING: tuple[Migration, ...] = (*ADDITIVE, m901_changes)


@dataclass(frozen=True)
class Shared:
    """A memory that two versions share."""

    path: Path
    url: str

    @property
    def place(self) -> tuple[str, ...]:
        return (str(self.path), *((self.url, "ada") if self.url else ()))

    def open(self) -> Database:
        """Open it as the older program does."""
        return open_it(self.path, *self.place[1:])

    def upgrade(self, steps: tuple[Migration, ...]) -> None:
        """Upgrade it as a newer program does when it opens it."""
        if self.url:
            from lore.store.postgres import schema

            schema.prepare(self.url, self.path, steps)
        else:
            open_database(self.path, busy_timeout_s=60, backups=None, steps=steps).close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read it as a program that knows everything."""
        if self.url:
            import psycopg

            from lore.store.postgres.owner_connection import PostgresConnection, owner_of

            with psycopg.connect(self.url, autocommit=True) as raw:
                raw.execute(f"SET search_path = lore, public; SET lore.owner = '{owner_of('ada')}'")
                raw.execute("SET ROLE lore_app; BEGIN")
                yield PostgresConnection(raw, self.path, owner_of("ada"))
        else:
            with closing(
                sqlite.open_connection(self.path, busy_timeout_s=60, read_only=True)
            ) as db:
                yield db

    def names(self) -> list[str]:
        with self.reading() as db:
            return sorted(db.column("SELECT name FROM speakers"))


@pytest.fixture
def shared(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shared]:
    if engine == "sqlite":
        yield Shared(tmp_path / "memory.db", "")
        return
    import psycopg

    url = request.getfixturevalue("postgres_url")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE upgraded")
        try:
            yield Shared(tmp_path / "server.db", url.replace("/postgres?", "/upgraded?"))
        finally:
            admin.execute("DROP DATABASE upgraded WITH (FORCE)")


@dataclass
class OlderProgram:
    """A process of the older program, and what it has printed."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def read(self) -> None:
        assert self.process.stdout is not None
        self.lines += (line.rstrip("\n") for line in self.process.stdout)

    @property
    def written(self) -> list[str]:
        return [line for line in self.lines if line.startswith("speaker ")]

    def write_more(self) -> None:
        """Wait until it has written some more rows."""
        least = len(self.written) + ENOUGH
        eventually(lambda: len(self.written) >= least or self.process.poll() is not None)


@contextmanager
def older_program(shared: Shared) -> Iterator[OlderProgram]:
    """Run the older program; it is stopped at the end, and has said all then."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.store.older_program", *shared.place],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        running = OlderProgram(process)
        reader = threading.Thread(target=running.read)
        reader.start()
        try:
            running.write_more()
            yield running
        finally:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            reader.join()


def test_an_older_program_goes_on_after_a_step_that_adds_and_is_refused_after_one_that_changes(
    shared: Shared,
) -> None:
    with older_program(shared) as older:
        shared.upgrade(ADDITIVE)
        older.write_more()
        assert older.process.poll() is None
        opened = shared.open()  # one that starts only now
        opened.write(lambda db: db.insert("speakers", name="a newcomer"))
        shared.upgrade(BREAKING)
        eventually(lambda: older.process.poll() is not None)
        with pytest.raises(SchemaTooNew, match="upgraded by a newer Lore"):
            opened.write(lambda db: db.insert("speakers", name="too late"))
        opened.close()
        with pytest.raises(SchemaTooNew, match="upgraded by a newer Lore"):
            shared.open()
    refused, last = older.lines[-2:]
    assert "was upgraded by a newer Lore, and this one is too old for it. Update this" in refused
    assert last == "refused to read"
    assert len(older.written) >= 2 * ENOUGH
    # nothing that was acknowledged is lost, and nothing was written in the former form afterwards
    assert shared.names() == sorted(name.upper() for name in (*older.written, "a newcomer"))
    with shared.reading() as db:
        assert db.column("SELECT uses FROM speakers") == [0] * (len(older.written) + 1)


def test_two_newer_programs_migrate_once_while_an_older_one_writes(shared: Shared) -> None:
    with older_program(shared) as older:
        started = threading.Barrier(2)
        failures: list[Exception] = []

        def upgrade() -> None:
            started.wait()
            try:
                shared.upgrade(ADDITIVE)
            except Exception as error:  # noqa: BLE001 - the test reports it
                failures.append(error)

        both = [threading.Thread(target=upgrade) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
        older.write_more()
    assert failures == []
    assert shared.names() == sorted(older.written)
    with shared.reading() as db:
        assert db.rows("SELECT n, note FROM later") == [(1, "once")]
        applied = db.column("SELECT name FROM migrations ORDER BY name")
    assert applied == sorted(step.__name__ for step in ADDITIVE)


def test_an_older_program_changes_nothing_when_it_opens_a_memory_that_has_more(
    shared: Shared,
) -> None:
    shared.upgrade(ADDITIVE)
    with shared.reading() as db:
        before = db.rows("SELECT name, at FROM migrations ORDER BY name")
    shared.open().close()
    with shared.reading() as db:
        assert db.rows("SELECT name, at FROM migrations ORDER BY name") == before


def test_the_oldest_program_is_that_of_the_last_step_which_changes_something() -> None:
    assert migrations.oldest_program(ADDITIVE) == migrations.oldest_program(MIGRATIONS)
    assert migrations.oldest_program(BREAKING) == len(BREAKING)
    assert migrations.oldest_program(()) == 0

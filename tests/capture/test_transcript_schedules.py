"""Any schedule of writing, cutting, renaming, replacing, killing and reading transcript files.

Whatever happens, each line that a reader could see is stored once, in the order in which the
readers saw them.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from lore.capture.transcript_capture import ReadOptions, TranscriptFile, capture_files, read_file
from lore.projects import ProjectFinder
from lore.store import messages, sessions
from lore.store.database import Database, open_database
from tests.transcripts import find_tiny, line

SCHEDULES = int(os.environ.get("LORE_TEST_SCHEDULES", "320"))
"""All different: a shard has a seed of its own, or all would try the same ones."""

SHARDS = 4
RAM = Path("/dev/shm") if Path("/dev/shm").is_dir() else None

counter = itertools.count()
NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)


class Killed(BaseException):
    """The reader's process is gone."""


class Interrupted:
    """A database whose writer is killed, or overtaken, at one of its writes."""

    def __init__(self, database: Database, at: int, happens: Callable[[Any], None]) -> None:
        self._database = database
        self._left = at
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def write(self, work: Callable[[Any], Any]) -> Any:
        self._left -= 1
        if self._left != 0:
            return self._database.write(work)
        self._happens(work)
        return self._database.write(work)


class Home:
    """One database on a RAM folder for all schedules; each has a session of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=RAM))
        self.open()

    def open(self) -> None:
        self.database = open_database(
            self.folder / "memory.db", busy_timeout_s=10, backups=self.folder / "backups"
        )

    def reopen(self) -> None:
        self.database.close()
        self.open()

    def close(self) -> None:
        self.database.close()
        shutil.rmtree(self.folder)


class Schedule(RuleBasedStateMachine):
    """Files of one session, what the readers must have stored, and what is stored."""

    home: Home

    @initialize()
    def initial_context(self) -> None:
        self.session = f"talk-{next(counter)}"
        self.folder = self.home.folder / self.session
        self.folder.mkdir()
        self.seen: list[str] = []
        self.ticks = 0
        self.reading = ReadOptions(
            self.home.database, find_tiny, ProjectFinder(Path("/nowhere")), batch_messages=2
        )

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def wrote(self, name: str) -> None:
        """Let every second change of a file lie in the past, each at a moment of its own."""
        self.ticks += 1
        if self.ticks % 2 and self.path(name).exists():
            moment_ns = (10**9 + self.ticks) * 10**9
            os.utime(self.path(name), ns=(moment_ns, moment_ns))

    def new_line(self) -> bytes:
        return line(10**6 + next(counter), session=self.session)

    def content(self, name: str) -> bytes:
        path = self.path(name)
        return path.read_bytes() if path.exists() else b""

    def visible(self, name: str) -> list[str]:
        """Return what a reader of the file can see."""
        found = []
        for raw in self.content(name).split(b"\n"):
            try:
                found.append(json.loads(raw.strip(b"\0\r"))["content"])
            except (ValueError, TypeError, KeyError):
                continue
        return found

    def unseen(self, *read: str) -> list[str]:
        visible = (text for name in read for text in self.visible(name))
        return [text for text in dict.fromkeys(visible) if text not in self.seen]

    def stored(self) -> list[str]:
        with self.home.database.read() as db:
            n = sessions.find_session(db, self.session, agent="tiny")
            found = messages.messages_of_session(db, n) if n else []
        assert [message.ordinal for message in found] == list(range(len(found)))
        return [message.parts[0].text for message in found]

    @rule(name=names, count=st.integers(1, 5))
    def append(self, name: str, count: int) -> None:
        with self.path(name).open("ab") as stream:
            stream.writelines(self.new_line() for _ in range(count))
        self.wrote(name)

    @rule(name=names, share=st.floats(0.1, 0.9))
    def append_half(self, name: str, share: float) -> None:
        whole = self.new_line()
        with self.path(name).open("ab") as stream:
            stream.write(whole[: int(len(whole) * share)])
        self.wrote(name)

    @rule(name=names)
    def append_junk(self, name: str) -> None:
        with self.path(name).open("ab") as stream:
            stream.write(b'\n{"half": \r\n\0\0\n\xff\xfe\n')

    @rule(name=names, share=st.floats(0, 1))
    def truncate(self, name: str, share: float) -> None:
        """Cut a file anywhere but between a whole line and its end.

        A reader takes such a line once the file has settled; whether what is written behind it
        is then a line of its own depends on who read first, and either is right.
        """
        if self.path(name).exists():
            left = self.content(name)[: int(len(self.content(name)) * share)]
            cut = len(left) - left.endswith(b"}")
            os.truncate(self.path(name), cut)
            self.wrote(name)

    @rule(name=names, to=names)
    def rotate(self, name: str, to: str) -> None:
        if self.path(name).exists():
            self.path(name).rename(self.path(to))

    @rule(name=names, seed=st.integers(0, 99), in_place=st.booleans())
    def replace(self, name: str, seed: int, in_place: bool) -> None:
        kept = [raw + b"\n" for raw in self.content(name).split(b"\n") if raw]
        kept = [self.new_line(), *random.Random(seed).sample(kept, len(kept) // 2)]
        other = self.path(name) if in_place else self.folder / "other"
        other.write_bytes(b"".join(kept))
        if not in_place:
            other.replace(self.path(name))
        self.wrote(name)

    @rule(name=names, place=st.integers(0, 9))
    def change_a_line(self, name: str, place: int) -> None:
        """A line becomes another one, and the file keeps its size."""
        lines = self.content(name).splitlines(keepends=True)
        new = self.new_line()
        whole = [i for i, old in enumerate(lines) if len(old) == len(new)]
        if whole:
            lines[whole[place % len(whole)]] = new
            with self.path(name).open("r+b") as stream:
                stream.write(b"".join(lines))
            self.wrote(name)

    @rule(name=names, to=names)
    def copy(self, name: str, to: str) -> None:
        if self.path(name).exists() and name != to:
            shutil.copy(self.path(name), self.path(to))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    @rule(name=names)
    def read(self, name: str) -> None:
        read_file(self.reading, self.path(name))
        self.seen += self.unseen(name)

    @rule(name=names, at=st.integers(1, 3), is_after=st.booleans(), reopens=st.booleans())
    def kill(self, name: str, at: int, is_after: bool, reopens: bool) -> None:
        """The reader dies inside a transaction, or after it before it learns of that."""
        self.read_and_die(at, self.dying(is_after=is_after), [name], reopens=reopens)

    def dying(self, *, is_after: bool) -> Callable[[Any], None]:
        def die(work: Callable[[Any], Any]) -> None:
            def dying(db: Any) -> None:
                work(db)
                msg = "killed"
                raise RuntimeError(msg)

            if is_after:
                self.home.database.write(work)
            else:
                with pytest.raises(RuntimeError, match="killed"):
                    self.home.database.write(dying)
            raise Killed

        return die

    @rule()
    def read_together(self) -> None:
        """All files are read in one go, and the short ones are written together."""
        capture_files(replace(self.reading, batch_messages=5), self.found())
        self.seen += self.unseen(*NAMES)

    @rule(at=st.integers(1, 3), is_after=st.booleans(), reopens=st.booleans())
    def kill_together(self, at: int, is_after: bool, reopens: bool) -> None:
        """The reader of all files dies."""
        self.read_and_die(at, self.dying(is_after=is_after), NAMES, reopens=reopens)

    def read_and_die(
        self, at: int, die: Callable[[Any], None], read: Sequence[str], *, reopens: bool
    ) -> None:
        try:
            if len(read) > 1:
                reading = replace(self.interrupted(at, die), batch_messages=5)
                capture_files(reading, self.found())
            else:
                read_file(self.interrupted(at, die), self.path(*read))
        except Killed:
            before, new = self.seen, self.unseen(*read)
            stored = self.stored()
            assert stored == before + new[: len(stored) - len(before)]
            self.seen = stored
            if reopens and len(stored) % 4 == 3:
                self.home.reopen()
                self.begin_again()
        else:
            self.seen += self.unseen(*read)

    def found(self) -> list[TranscriptFile]:
        paths = [path for path in map(self.path, NAMES) if path.exists()]
        return [TranscriptFile(path, path.stat().st_size, named=True) for path in paths]

    def begin_again(self) -> None:
        self.reading = ReadOptions(
            self.home.database, find_tiny, ProjectFinder(Path("/nowhere")), batch_messages=2
        )

    @rule(name=names, at=st.integers(1, 3))
    def read_at_once(self, name: str, at: int) -> None:
        """Another reader reads the whole file while this one is in the middle of it."""

        def overtake(_work: object) -> None:
            read_file(self.reading, self.path(name))

        read_file(self.interrupted(at, overtake), self.path(name))
        self.seen += self.unseen(name)

    @rule(name=names, at=st.integers(1, 3))
    def append_while_read(self, name: str, at: int) -> None:
        def grow(_work: object) -> None:
            self.append(name, 1)

        read_file(self.interrupted(at, grow), self.path(name))
        read_file(self.reading, self.path(name))
        self.seen += self.unseen(name)

    def interrupted(self, at: int, happens: Callable[[Any], None]) -> ReadOptions:
        database: Any = Interrupted(self.home.database, at, happens)
        return ReadOptions(database, find_tiny, self.reading.projects, batch_messages=2)

    @invariant()
    def each_line_is_stored_once_and_in_order(self) -> None:
        if hasattr(self, "seen"):
            assert self.stored() == self.seen

    def teardown(self) -> None:
        if hasattr(self, "seen"):
            for name in NAMES:
                self.read(name)
            assert self.stored() == self.seen
            shutil.rmtree(self.folder)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_any_schedule_stores_each_line_once_and_in_order(shard: int):
    Schedule.home = Home()
    try:
        run_state_machine_as_test(
            seed(shard)(type("Schedule", (Schedule,), {})),
            settings=settings(
                max_examples=SCHEDULES // SHARDS,
                stateful_step_count=20,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        Schedule.home.close()

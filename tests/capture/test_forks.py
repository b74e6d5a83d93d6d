"""Forks: the same conversation is stored once, whichever file is read first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lore.capture.adapters import adapter_registry
from lore.capture.transcript_capture import ReadOptions, read_file
from lore.projects import ProjectFinder
from lore.store import hard_delete, messages, sessions
from lore.store.database import Database, open_database
from tests.capture.adapters.samples import claude_line
from tests.fakes import NOON, FixedClock


@dataclass(frozen=True)
class Folder:
    """A folder of transcripts, and the memory that reads them."""

    path: Path
    database: Database
    batch_messages: int = 1_000

    def write(self, session: str, *numbers: int) -> None:
        """Append lines to the transcript of a session; a number is a uuid, a text and a time."""
        with (self.path / f"{session}.jsonl").open("ab") as stream:
            for number in numbers:
                at = (NOON + timedelta(seconds=number)).isoformat()
                more = {"uuid": f"u{number}", "sessionId": session, "timestamp": at}
                stream.write(orjson.dumps(claude_line("user", f"Line {number}", **more)) + b"\n")

    def read(self, session: str) -> int:
        """Read the transcript of a session and count what was new."""
        reading = ReadOptions(
            self.database, adapter_registry.find_adapter, ProjectFinder(Path("/nowhere")),
            batch_messages=self.batch_messages,
        )  # fmt: skip
        return read_file(reading, self.path / f"{session}.jsonl").added

    def rehearse(self, *sessions: str) -> list[int]:
        """Count what would be new in the transcripts of sessions, without storing it."""
        reading = ReadOptions(
            self.database, adapter_registry.find_adapter, ProjectFinder(Path("/nowhere")),
            batch_messages=self.batch_messages, dry_run=True,
        )  # fmt: skip
        return [read_file(reading, self.path / f"{name}.jsonl").added for name in sessions]

    def numbers(self, session: str) -> list[int]:
        """Return what is stored of a session, in order."""
        with self.database.read() as db:
            n = sessions.find_session(db, session, agent="claude-code")
            stored = messages.messages_of_session(db, n) if n is not None else []
        return [int(message.parts[0].text.removeprefix("Line ")) for message in stored]

    def parent(self, session: str) -> str:
        """Return the session that another one comes from."""
        with self.database.read() as db:
            found = {one.id: one for one in sessions.recent_sessions(db, limit=1_000)}
        own = next(one for one in found.values() if one.external_id == session)
        return found[own.parent_id].external_id if own.parent_id else ""

    def forget(self, *, session: str = "", text: str = "") -> None:
        """Forget a session or all that says a text."""
        self.database.write(
            lambda db: hard_delete.forget(
                db, hard_delete.select(db, "", session, "", text), text=text, now=NOON
            )
        )


@pytest.fixture
def folder(tmp_path: Path, database: Database) -> Folder:
    return Folder(tmp_path, database)


def test_fork_stores_its_own_messages_and_links_to_its_origin(folder):
    folder.write("first", 1, 2, 3)
    folder.write("fork", 1, 2, 3, 7, 8)
    assert (folder.read("first"), folder.read("fork")) == (3, 2)
    assert (folder.numbers("first"), folder.numbers("fork")) == ([1, 2, 3], [7, 8])
    assert (folder.parent("first"), folder.parent("fork")) == ("", "first")


def test_copied_messages_move_to_the_original_that_is_read_later(folder):
    folder.write("fork", 3, 2, 4, 7)
    folder.write("first", 1, 2, 3, 4, 5)
    assert (folder.read("fork"), folder.read("first")) == (4, 2)
    assert (folder.numbers("first"), folder.numbers("fork")) == ([1, 2, 3, 4, 5], [7])
    assert (folder.parent("first"), folder.parent("fork")) == ("", "first")


def test_shared_beginning_belongs_to_the_session_read_first(folder):
    folder.write("fork", 1, 2, 7)
    folder.write("first", 1, 2, 3)
    assert (folder.read("fork"), folder.read("first")) == (3, 1)
    assert (folder.numbers("fork"), folder.numbers("first")) == ([1, 2, 7], [3])
    assert (folder.parent("fork"), folder.parent("first")) == ("", "fork")


def test_a_fork_of_a_fork_comes_from_the_one_that_it_left_last(folder):
    folder.write("first", 1, 2)
    folder.write("second", 1, 2, 3, 4)
    folder.write("third", 1, 2, 3, 4, 5)
    assert [folder.read(name) for name in ("first", "second", "third")] == [2, 2, 1]
    assert [folder.parent(name) for name in ("second", "third")] == ["first", "second"]


def test_a_fork_in_which_nothing_was_said_yet_has_no_messages_and_goes_on(folder):
    folder.write("first", 1, 2)
    folder.write("fork", 1, 2)
    assert (folder.read("first"), folder.read("fork")) == (2, 0)
    folder.write("fork", 3)
    assert folder.read("fork") == 1
    assert (folder.numbers("fork"), folder.parent("fork")) == ([3], "first")


def test_messages_stored_under_a_fork_move_to_its_original(folder):
    folder.write("first", 1)
    folder.read("first")
    folder.write("first", 2)
    folder.write("fork", 1, 2, 7)
    folder.read("fork")
    assert folder.numbers("fork") == [2, 7]
    folder.write("first", 3)
    assert folder.read("first") == 1
    assert (folder.numbers("first"), folder.numbers("fork")) == ([1, 2, 3], [7])


def test_a_line_of_its_own_before_the_copies_does_not_hide_them(folder):
    folder.write("first", 1, 2)
    folder.read("first")
    folder.write("fork", 6)
    folder.read("fork")
    folder.write("fork", 1, 2, 7)
    assert folder.read("fork") == 1
    assert (folder.numbers("fork"), folder.parent("fork")) == ([6, 7], "first")


def test_the_same_words_under_another_uuid_are_no_copy(folder):
    folder.write("first", 1, 2)
    line = claude_line("user", "Line 1", uuid="other", sessionId="second")
    (folder.path / "second.jsonl").write_bytes(orjson.dumps(line) + b"\n")
    assert (folder.read("first"), folder.read("second")) == (2, 1)
    assert folder.parent("second") == ""


def test_a_fork_does_not_bring_back_what_was_forgotten(folder):
    folder.write("first", 1, 2, 3)
    folder.read("first")
    folder.forget(text="Line 2")
    folder.write("fork", 1, 2, 3, 7)
    assert folder.read("fork") == 1
    assert folder.numbers("fork") == [7]
    folder.forget(session="first")
    folder.write("other", 1, 2, 3, 8)
    assert folder.read("other") == 1
    assert (folder.numbers("other"), folder.parent("other")) == ([8], "")


def test_rewound_and_forgotten_messages_are_not_stored_again(folder, tmp_path):
    folder.write("fork", 2, 7)
    folder.write("first", 1, 2)
    folder.read("fork")
    folder.read("first")
    folder.forget(text="Line 2")
    for session in ("first", "fork"):
        path = folder.path / f"{session}.jsonl"
        path.rename(tmp_path / "old")
        path.write_bytes((tmp_path / "old").read_bytes())
        assert folder.read(session) == 0
    assert (folder.numbers("first"), folder.numbers("fork")) == ([1], [7])


def test_a_dry_run_counts_no_copies(folder):
    folder.write("first", 1, 2, 3)
    folder.write("fork", 1, 2, 3, 7)
    assert folder.rehearse("first", "fork") == [3, 1]
    assert folder.rehearse("fork", "first") == [4, 0]
    folder.read("first")
    assert folder.rehearse("first", "fork") == [0, 1]
    folder.read("fork")
    folder.write("fork", 8)
    assert folder.rehearse("fork") == [1]


def test_dry_run_skips_messages_stored_by_an_earlier_fork(folder):
    folder.write("fork", 8, 15)
    folder.read("fork")
    folder.write("first", 3, 4, 5, 6, 7, 8, 9)
    assert folder.rehearse("first") == [6]
    assert folder.read("first") == 6


def test_a_dry_run_counts_nothing_that_was_forgotten(folder):
    folder.write("first", 1, 2, 3)
    folder.read("first")
    folder.forget(text="Line 2")
    folder.write("fork", 1, 2, 3, 7)
    assert folder.rehearse("fork") == [1]
    folder.forget(session="first")
    assert folder.rehearse("fork", "first") == [1, 0]


def test_without_a_database_a_dry_run_counts_no_copies_either(folder):
    folder.write("first", 1, 2)
    folder.write("fork", 1, 2, 7)
    reading = ReadOptions(
        None, adapter_registry.find_adapter, ProjectFinder(Path("/nowhere")), dry_run=True
    )
    counts = [read_file(reading, folder.path / f"{name}.jsonl") for name in ("first", "fork")]
    assert [count.added for count in counts] == [2, 1]


@st.composite
def families(draw: st.DrawFn) -> dict[str, list[int]]:
    """Transcripts that fork each other: each copies a stretch of another, and goes on."""
    number = 0
    lines: dict[str, list[int]] = {}
    for name in "abcd"[: draw(st.integers(2, 4))]:
        copied: list[int] = []
        if lines:
            source = lines[draw(st.sampled_from(sorted(lines)))]
            start = draw(st.integers(0, len(source) - 1))
            copied = source[start : draw(st.integers(start + 1, len(source)))]
        own = draw(st.integers(1, 6))
        lines[name] = [*copied, *range(number + 1, number + own + 1)]
        number += own
    return lines


@given(families(), st.data(), st.sampled_from([1, 2, 3, 1_000]))
@settings(max_examples=40, phases=tuple(set(Phase) - {Phase.shrink}))
def test_every_line_is_stored_once_and_in_order_whatever_is_read_when(lines, data, batch):
    with TemporaryDirectory() as place:
        path = Path(place)
        database = open_database(
            path / "memory.db", busy_timeout_s=5, backups=path / "backups", now=FixedClock()
        )
        folder = replace(Folder(path, database), batch_messages=batch)
        left = {name: list(numbers) for name, numbers in lines.items()}
        while left:
            name = data.draw(st.sampled_from(sorted(left)))
            count = data.draw(st.integers(1, len(left[name])))
            folder.write(name, *left[name][:count])
            folder.read(name)
            left[name] = left[name][count:]
            if not left[name]:
                del left[name]
        stored = {name: folder.numbers(name) for name in lines}
        database.close()
    told = Counter(number for numbers in lines.values() for number in numbers)
    kept = [number for numbers in stored.values() for number in numbers]
    assert sorted(kept) == sorted(told)
    for name, numbers in stored.items():
        assert [number for number in lines[name] if number in numbers] == numbers
        own = [number for number in lines[name] if told[number] == 1]
        assert [number for number in numbers if told[number] == 1] == own


@given(families(), st.data(), st.sampled_from([1, 3, 1_000]))
@settings(max_examples=30, phases=tuple(set(Phase) - {Phase.shrink}))
def test_dry_run_counts_equal_the_following_run(lines, data, batch):
    with TemporaryDirectory() as place:
        path = Path(place)
        database = open_database(
            path / "memory.db", busy_timeout_s=5, backups=path / "backups", now=FixedClock()
        )
        folder = replace(Folder(path, database), batch_messages=batch)
        names = data.draw(st.permutations(sorted(lines)))
        for name in names:
            folder.write(name, *lines[name])
        for name in names[: data.draw(st.integers(0, len(names)))]:
            folder.read(name)
        rehearsed = sum(folder.rehearse(*names))
        stored = sum(folder.read(name) for name in names)
        database.close()
    assert rehearsed == stored

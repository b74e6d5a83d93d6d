"""Delivering: short files share a transaction, and none of them pays for another."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.capture.transcript_capture import ReadOptions, TranscriptFile, capture_files
from lore.errors import InvalidInput
from lore.projects import ProjectFinder
from lore.records import CaptureResult
from lore.store import messages, sessions
from lore.store.database import Connection, Database
from lore.text.name_limit import LONGEST_NAME
from tests.transcripts import TinyAgent, find_tiny, line

TALKS = ("a", "b", "c", "d", "e")


class Counted:
    """A database that counts its writes, and refuses those that store a session's message."""

    def __init__(self, database: Database, refused: str = "") -> None:
        self._database = database
        self._refused = refused
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def write(self, work: Callable[[Connection], Any]) -> Any:
        """Run a write."""
        self.writes += 1

        def careful(db: Connection) -> Any:
            result = work(db)
            if self._refused and sessions.find_session(db, self._refused, agent="tiny"):
                msg = "A value cannot be stored."
                raise InvalidInput(msg)
            return result

        return self._database.write(careful)


def reading_of(database: Any) -> ReadOptions:
    return ReadOptions(database, find_tiny, ProjectFinder(Path("/nowhere")))


@pytest.fixture
def talks(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.jsonl" for name in TALKS]
    for path in paths:
        path.write_bytes(line(1, f"heron of {path.stem}") + line(2, f"more of {path.stem}"))
        os.utime(path, (1e9, 1e9))  # what was written just now would be looked at again
    return paths


def capture(reading: ReadOptions, paths: list[Path]) -> CaptureResult:
    return capture_files(
        reading, [TranscriptFile(path, path.stat().st_size, named=True) for path in paths]
    )


def texts(database: Database, session: str) -> list[str]:
    with database.read() as db:
        n = sessions.find_session(db, session, agent="tiny")
        found = messages.messages_of_session(db, n) if n else []
    return [message.parts[0].text for message in found]


def test_short_files_are_written_in_one_transaction(database, talks):
    counted = Counted(database)
    captured = capture(reading_of(counted), talks)
    assert (counted.writes, captured.added) == (1, 2 * len(TALKS))
    assert [(Path(each.path).stem, each.added, each.sessions) for each in captured.each] == [
        (name, 2, (name,)) for name in TALKS
    ]


def test_messages_of_one_transaction_are_found_by_keyword(database, talks):
    capture(reading_of(database), talks)
    with database.read() as db:
        rows = db.rows("SELECT rowid FROM message_words WHERE message_words MATCH 'heron'")
        said = messages.get_messages(db, [row[0] for row in rows]).values()
    assert sorted(m.parts[0].text for m in said) == [f"heron of {name}" for name in TALKS]


def test_transactions_are_limited_to_the_batch_size(database, talks):
    counted = Counted(database)
    capture(replace(reading_of(counted), batch_messages=5), talks)
    assert counted.writes == 3
    assert all(len(texts(database, name)) == 2 for name in TALKS)


def test_empty_files_are_flushed(database, tmp_path):
    paths = [tmp_path / f"{i}.jsonl" for i in range(100)]
    for path in paths:
        path.write_bytes(b'{"silent": true}\n')
    counted = Counted(database)
    capture(reading_of(counted), paths)
    assert counted.writes == 2


def test_file_that_cannot_be_stored_does_not_affect_earlier_files(database, talks):
    with pytest.raises(InvalidInput):
        capture(reading_of(Counted(database, refused="c")), talks)
    assert [len(texts(database, name)) for name in TALKS] == [2, 2, 0, 0, 0]
    assert capture(reading_of(database), talks).added == 6


@pytest.mark.parametrize("place", ["path", "remote"])
def test_a_project_with_a_long_name_does_not_stop_the_capture(database, talks, tmp_path, place):
    folder, remote = tmp_path / "code", "x"
    if place == "remote":
        remote = "x" * 1_100
    else:
        folder = folder.joinpath(*["x" * 250] * 5)
    (folder / ".git/refs").mkdir(parents=True)
    (folder / ".git/HEAD").touch()
    (folder / ".git/config").write_text(f'[remote "origin"]\nurl = https://host/{remote}\n')
    link = tmp_path / "link"
    link.symlink_to(folder)
    talks[1].write_bytes(line(1, folder=str(link)) + line(2, folder=str(link)))
    assert capture(reading_of(database), talks).added == 2 * len(TALKS)
    with database.read() as db:
        ((path, url),) = db.rows("SELECT path, remote FROM projects")
    assert len({"path": path, "remote": url}[place].encode()) == LONGEST_NAME


def test_files_read_before_a_machine_failure_are_stored(database, talks):
    def find(path: Path, head: bytes) -> TinyAgent:
        if path.stem == "c":
            raise MemoryError
        return TinyAgent()

    with pytest.raises(MemoryError):
        capture(replace(reading_of(database), find_adapter=find), talks)
    assert [len(texts(database, name)) for name in TALKS] == [2, 2, 0, 0, 0]


def test_stopping_stores_the_files_read_so_far(database, talks):
    asked = iter([False, False, True])
    capture(replace(reading_of(database), stopping=lambda: next(asked)), talks)
    assert [len(texts(database, name)) for name in TALKS] == [2, 2, 0, 0, 0]


def test_a_file_with_two_names_is_read_once(database, talks, tmp_path):
    other = tmp_path / "other.jsonl"
    os.link(talks[0], other)
    captured = capture(reading_of(database), [talks[0], other])
    assert (captured.added, captured.known) == (2, 0)
    assert texts(database, "other") == []


def test_a_file_that_is_named_twice_is_read_once(database, talks):
    captured = capture(reading_of(database), [talks[0], talks[0]])
    assert (captured.added, captured.known) == (2, 0)

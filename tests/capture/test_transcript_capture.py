"""Transcript files: every way in which a file can surprise its reader."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.capture.adapter_protocol import Context, ParsedLine
from lore.capture.adapters import adapter_registry
from lore.capture.message_batches import Batch, FileCounts
from lore.capture.transcript_capture import (
    UNKNOWN,
    ReadOptions,
    TranscriptFile,
    capture_files,
    find_files,
    read_file,
)
from lore.errors import StoreFull
from lore.projects import ProjectFinder
from lore.records import Watermark
from lore.redaction.redactor import Redactor
from lore.store import messages, sessions, watermarks
from lore.store.database import Database
from tests.transcripts import TinyAgent, TinyArchive, find_tiny, line


@pytest.fixture
def reading(database: Database) -> ReadOptions:
    return ReadOptions(database, find_tiny, ProjectFinder(Path("/nowhere")))


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    return tmp_path / "talk.jsonl"


def texts(database: Database, session: str = "talk") -> list[str]:
    with database.read() as db:
        n = sessions.get_session_number(db, session)
        return [message.parts[0].text for message in messages.messages_of_session(db, n)]


def mark_of(database: Database, path: Path) -> Watermark:
    with database.read() as db:
        found = watermarks.find(db, str(path))
    assert found is not None
    return found


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def settle(path: Path) -> None:
    """Make a file look as if it was written a while ago."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - 10**9))


def test_a_file_is_read_once_and_then_from_where_it_ended(reading, talk, database):
    talk.write_bytes(line(1) + line(2))
    counts = read_file(reading, talk)
    assert (counts.added, counts.known, counts.agent) == (2, 0, "tiny")
    append(talk, line(3))
    counts = read_file(reading, talk)
    assert (counts.added, counts.known, counts.bytes) == (1, 0, len(line(3)))
    assert texts(database) == ["line 1", "line 2", "line 3"]


def test_a_session_that_is_dated_far_ahead_began_when_it_was_captured(
    reading, talk, database, clock
):
    clock.advance(days=-30)
    talk.write_bytes(line(1))
    read_file(reading, talk)
    with database.read() as db:
        session = sessions.get_session(db, sessions.get_session_number(db, "talk"))
    assert session.started_at == session.last_message_at == database.now()


def test_a_file_that_did_not_change_is_not_opened(reading, talk):
    talk.write_bytes(line(1))
    settle(talk)
    read_file(reading, talk)

    def refuse(path: Path, head: bytes) -> None:
        raise AssertionError

    assert read_file(replace(reading, find_adapter=refuse), talk).added == 0


def test_a_half_written_line_waits_for_its_end(reading, talk, database):
    whole = line(2)
    talk.write_bytes(line(1) + whole[:-5])
    assert read_file(reading, talk).added == 1
    assert mark_of(database, talk).position == len(line(1))
    append(talk, whole[-5:])
    read_file(reading, talk)
    assert texts(database) == ["line 1", "line 2"]
    assert mark_of(database, talk).problem == ""


def test_a_last_line_without_an_end_is_whole_if_its_object_is(reading, talk, database):
    talk.write_bytes(line(1).rstrip())
    read_file(reading, talk)
    assert texts(database) == ["line 1"]
    append(talk, b"\n" + line(2).rstrip())
    read_file(reading, talk)
    assert texts(database) == ["line 1", "line 2"]


def test_a_watermark_keeps_what_the_adapter_remembers(reading, talk, database):
    talk.write_bytes(line(1, session="other", branch="main") + line(2))
    read_file(reading, talk)
    mark = mark_of(database, talk)
    context = json.loads(mark.context)
    assert (context["session"], context["branch"], context["state"]) == (
        "other", "main", {"lines": "2"},
    )  # fmt: skip
    assert mark.session_id is not None
    append(talk, line(3))
    read_file(reading, talk)
    assert texts(database, "other") == ["line 1", "line 2", "line 3"]


def test_a_truncated_file_is_read_again_without_doubles(reading, talk, database):
    talk.write_bytes(line(1) + line(2) + line(3))
    read_file(reading, talk)
    talk.write_bytes(line(1))
    assert read_file(reading, talk).known == 1
    append(talk, line(4))
    read_file(reading, talk)
    assert texts(database) == ["line 1", "line 2", "line 3", "line 4"]


def test_a_renamed_file_goes_on_under_its_new_name(reading, talk, database, tmp_path):
    talk.write_bytes(line(1) + line(2))
    read_file(reading, talk)
    moved = tmp_path / "talk.1.jsonl"
    talk.rename(moved)
    append(moved, line(3))
    counts = read_file(reading, moved)
    assert (counts.added, counts.known) == (1, 0)
    assert texts(database) == ["line 1", "line 2", "line 3"]
    with database.read() as db:
        assert watermarks.find(db, str(talk)) is None
    talk.write_bytes(line(4, session="talk"))
    read_file(reading, talk)
    assert texts(database)[-1] == "line 4"


def test_a_replaced_file_is_read_again(reading, talk, database, tmp_path):
    talk.write_bytes(line(1) + line(2))
    read_file(reading, talk)
    other = tmp_path / "new"
    other.write_bytes(line(1) + line(2, "changed") + line(3))
    other.replace(talk)
    assert read_file(reading, talk).known == 2
    assert texts(database) == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("padding", ["", "x" * 5_000])
def test_a_file_that_changed_before_the_mark_is_read_again(reading, talk, database, place, padding):
    lines = [line(i, padding=padding) for i in (1, 2, 3)]
    talk.write_bytes(b"".join(lines))
    settle(talk)
    read_file(reading, talk)
    lines[place] = line(7, padding=padding)
    talk.write_bytes(b"".join(lines))
    read_file(reading, talk)
    assert texts(database) == ["line 1", "line 2", "line 3", "line 7"]


def test_a_copy_of_a_file_adds_nothing(reading, talk, database, tmp_path):
    talk.write_bytes(line(1, session="a") + line(2))
    read_file(reading, talk)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(talk.read_bytes())
    assert read_file(reading, copy).known == 2
    assert texts(database, "a") == ["line 1", "line 2"]


def test_a_deleted_file_loses_nothing_and_is_no_problem(reading, talk, database):
    talk.write_bytes(line(1))
    read_file(reading, talk)
    talk.unlink()
    assert read_file(reading, talk).problem == ""
    assert texts(database) == ["line 1"]


@pytest.mark.parametrize(
    "data",
    [
        line(1).replace(b"\n", b"\r\n") + line(2).replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + line(1) + line(2),
        line(1) + b"\n\r\n  \n" + line(2),
        line(1) + b"\0\0\0\0" + line(2),
        b"\0" * 100 + b"\n" + line(1) + line(2),
    ],
)
def test_ends_of_lines_marks_blanks_and_zeros_do_not_matter(reading, talk, database, data):
    talk.write_bytes(data)
    counts = read_file(reading, talk)
    assert (counts.problem, texts(database)) == ("", ["line 1", "line 2"])


def test_text_that_is_not_utf8_is_kept_as_well_as_it_can_be(reading, talk, database):
    talk.write_bytes(line(1, "caf\u00e9").replace(b"\\u00e9", b"\xe9") + line(2, "half \ud83d"))
    assert read_file(reading, talk).problem == ""
    assert texts(database) == ["caf\ufffd", "half  "]


def test_lines_that_are_not_json_are_counted_and_reported_once(reading, talk, database):
    talk.write_bytes(line(1) + b"not json\n" + b'{"role": \n' + line(2))
    counts = read_file(reading, talk)
    assert counts.skipped == {"not JSON": 2}
    assert (counts.problem, counts.news) == ("has lines that are not JSON", True)
    append(talk, b"{{{\n" + line(3))
    counts = read_file(reading, talk)
    assert (counts.skipped, counts.news) == ({"not JSON": 1}, False)
    assert texts(database) == ["line 1", "line 2", "line 3"]


def test_a_line_of_another_sort_is_counted_by_its_name(reading, talk):
    talk.write_bytes(b'{"type": "progress"}\n[1, 2]\n7\n' + line(1))
    counts = read_file(reading, talk)
    assert (counts.skipped, counts.problem, counts.added) == ({"no message": 3}, "", 1)


class Slipping(TinyAgent):
    """A tiny agent that raises on the line that says so, and at once if it is told to."""

    def __init__(self, error: Exception, *, at_once: bool = False) -> None:
        self.error = error
        self.at_once = at_once

    def initial_context(self, path: Path) -> Context:
        """Return what the tiny agent does, or raise."""
        if self.at_once:
            raise self.error
        return super().initial_context(path)

    def parse_line(self, line: Any, context: Context) -> ParsedLine:
        """Return what the tiny agent does, or raise."""
        if line["content"] == "slip":
            raise self.error
        return super().parse_line(line, context)


SLIPS = [
    ValueError("x"), TypeError("x"), KeyError("x"), IndexError("x"), AttributeError("x"),
    OverflowError("x"), ZeroDivisionError("x"), RecursionError("x"),
]  # fmt: skip


@pytest.mark.parametrize("error", SLIPS, ids=repr)
def test_line_on_which_an_adapter_raises_is_skipped_and_reported_once(
    reading, talk, database, error
):
    reading = replace(reading, find_adapter=lambda path, head: Slipping(error))
    talk.write_bytes(line(1) + line(2, "slip") + line(3, "slip") + line(4))
    counts = read_file(reading, talk)
    assert (counts.added, counts.skipped) == (2, {"unreadable": 2})
    assert (counts.problem, counts.news) == ("has lines that are unreadable", True)
    append(talk, line(5, "slip") + line(6))
    counts = read_file(reading, talk)
    assert (counts.added, counts.skipped, counts.news) == (1, {"unreadable": 1}, False)
    assert texts(database) == ["line 1", "line 4", "line 6"]


@pytest.mark.parametrize("field", ["session", "parent", "folder"])
def test_a_message_with_a_name_too_long_to_be_stored_is_skipped(reading, talk, database, field):
    talk.write_bytes(line(1) + line(2, **{field: "/" + "x" * 1_024}))
    counts = read_file(reading, talk)
    assert (counts.added, counts.skipped) == (1, {"name too long": 1})
    assert texts(database) == ["line 1"]


def test_a_message_may_have_a_longer_key_than_names(reading, talk, database):
    talk.write_bytes(line(1) + line(2, id="/" + "x" * 1_024))
    assert read_file(reading, talk).added == 2
    assert read_file(reading, talk).added == 0
    assert texts(database) == ["line 1", "line 2"]


def test_machine_failure_is_not_counted_as_a_bad_line(reading, talk):
    talk.write_bytes(line(1, "slip"))
    with pytest.raises(MemoryError):
        read_file(replace(reading, find_adapter=lambda *_: Slipping(MemoryError())), talk)


@pytest.mark.parametrize("error", SLIPS, ids=repr)
def test_adapter_that_raises_at_once_affects_only_its_file(reading, tmp_path, database, error):
    talks = tmp_path / "talks"
    talks.mkdir()
    for name in ("a", "b", "c"):
        (talks / f"{name}.jsonl").write_bytes(line(1, f"words of {name}"))

    def find(path: Path, head: bytes) -> TinyAgent:
        if path.stem == "b":
            raise error
        return Slipping(error, at_once=path.stem == "a")

    found = find_files([talks], (), tmp_path)
    captured = capture_files(replace(reading, find_adapter=find), found)
    assert [Path(each.path).name for each in captured.problems] == ["a.jsonl", "b.jsonl"]
    assert {each.problem for each in captured.problems} == {f"cannot be read: {name_of(error)}"}
    assert texts(database, "c") == ["words of c"]


@pytest.mark.parametrize("error", SLIPS[1:], ids=repr)
def test_archive_on_which_an_adapter_raises_affects_no_other_file(
    reading, tmp_path, database, error
):
    (tmp_path / "all.archive").write_text(json.dumps([["a"], ["b"], ["c"]]))
    (tmp_path / "talk.jsonl").write_bytes(line(1))

    def find(path: Path, head: bytes) -> TinyAgent | TinyArchive | None:
        broken = TinyArchive(breaks_at=2, error=error)
        return broken if path.suffix == ".archive" else find_tiny(path, head)

    found = find_files([tmp_path], (), tmp_path)
    captured = capture_files(replace(reading, find_adapter=find), found)
    assert [each.problem for each in captured.problems] == [f"cannot be read: {name_of(error)}"]
    assert captured.added == 3
    assert texts(database) == ["line 1"]
    assert texts(database, "s1") == ["b"]


def name_of(error: Exception) -> str:
    return type(error).__name__


def test_deeply_nested_line_is_counted_as_skipped(reading, talk, database):
    talk.write_bytes(b"[" * 200_000 + b"]" * 200_000 + b"\n" + b'{"a":' * 100_000 + b"\n" + line(1))
    counts = read_file(reading, talk)
    assert counts.skipped == {"nested too deeply": 2}
    assert texts(database) == ["line 1"]


def test_a_line_beyond_the_bound_is_passed_over(reading, talk, database):
    short = replace(reading, longest_line=1_000)
    long = line(2, "x" * 3_000_000)
    talk.write_bytes(line(1) + long + line(3) + long[:-9])
    counts = read_file(short, talk)
    assert (counts.skipped, counts.problem) == ({"too long": 1}, "has lines that are too long")
    assert texts(database) == ["line 1", "line 3"]
    assert mark_of(database, talk).position == len(line(1) + long + line(3))
    append(talk, long[-9:] + line(4))
    read_file(short, talk)
    assert texts(database) == ["line 1", "line 3", "line 4"]


def test_a_line_of_fifty_megabytes_does_not_stop_the_rest(reading, talk, database):
    talk.write_bytes(line(1) + line(2, "word " * 10_000_000) + line(3))
    counts = read_file(reading, talk)
    assert counts.skipped == {"too long": 1}
    assert texts(database) == ["line 1", "line 3"]


def test_a_line_without_an_end_is_passed_over_in_pieces(reading, talk, database):
    talk.write_bytes(line(1) + b"x" * (110 << 20))
    counts = read_file(reading, talk)
    assert counts.skipped == {"too long": 1}
    first = mark_of(database, talk).position
    assert first == len(line(1)) + (96 << 20)
    append(talk, b"\n" + line(2))
    assert read_file(reading, talk).skipped == {"not JSON": 1}
    assert texts(database) == ["line 1", "line 2"]


def test_a_file_of_holes_is_not_read_byte_by_byte(reading, talk, database):
    talk.write_bytes(line(1))
    os.truncate(talk, 10 << 30)
    assert read_file(reading, talk).added == 1
    assert mark_of(database, talk).position == len(line(1))
    append(talk, b"\n" + line(2))
    read_file(reading, talk)
    assert texts(database) == ["line 1", "line 2"]


def test_symbolic_link_is_not_followed_and_reported_once(reading, talk, tmp_path):
    real = tmp_path / "real"
    real.write_bytes(line(1))
    talk.symlink_to(real)
    counts = read_file(reading, talk)
    assert (counts.problem, counts.news) == ("is a symbolic link, which is not followed", True)
    assert not read_file(reading, talk).news


def test_folders_and_pipes_are_no_transcripts(reading, talk, tmp_path):
    talk.mkdir()
    assert read_file(reading, talk).problem == "is a folder"
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    assert read_file(reading, pipe).problem == "is no ordinary file"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
def test_a_file_without_permission_is_read_once_it_has_one(reading, talk, database):
    talk.write_bytes(line(1))
    talk.chmod(0)
    assert read_file(reading, talk).problem == "cannot be read: Permission denied"
    talk.chmod(0o600)
    assert read_file(reading, talk).problem == ""
    assert texts(database) == ["line 1"]


def test_a_path_that_became_a_file_again_is_read(reading, talk, database):
    talk.write_bytes(line(1))
    read_file(reading, talk)
    talk.rename(talk.with_suffix(".kept"))
    talk.symlink_to(talk.with_suffix(".kept"))
    assert read_file(reading, talk).problem
    talk.unlink()
    talk.with_suffix(".kept").rename(talk)
    append(talk, line(2))
    counts = read_file(reading, talk)
    assert (counts.problem, counts.added, counts.known) == ("", 1, 0)


def test_unknown_file_in_a_folder_is_reported_without_a_watermark(reading, tmp_path, database):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"hello")
    counts = read_file(reading, path)
    assert (counts.problem, counts.news) == (UNKNOWN, True)
    with database.read() as db:
        assert watermarks.find(db, str(path)) is None


def test_unknown_named_file_is_reported_once(reading, tmp_path, database):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"hello")
    os.utime(path, (1, 1))
    remembering = replace(reading, remembers_unknown=True)
    assert read_file(remembering, path).news
    again = read_file(remembering, path)
    assert (again.problem, again.news) == (UNKNOWN, False)
    with database.read() as db:
        mark = watermarks.find(db, str(path))
    assert mark is not None
    assert (mark.size, mark.modified_ns) == (5, 1_000_000_000)


def test_unknown_file_is_read_once_it_becomes_a_transcript(reading, talk):
    talk.write_bytes(b"hello")
    remembering = replace(reading, remembers_unknown=True, find_adapter=lambda _path, _head: None)
    assert read_file(remembering, talk).problem == UNKNOWN
    talk.unlink()
    append(talk, line(0) + line(1))
    counts = read_file(reading, talk)
    assert (counts.problem, counts.added) == ("", 2)


def test_a_name_that_is_no_text_is_no_obstacle(reading, tmp_path, database):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff.jsonl"))
    path.write_bytes(line(1, session="s"))
    assert read_file(reading, path).added == 1
    append(path, line(2))
    assert read_file(reading, path).added == 1
    assert texts(database, "s") == ["line 1", "line 2"]


def test_a_dry_run_counts_and_writes_nothing(reading, talk, database):
    talk.write_bytes(line(1) + line(2))
    dry = replace(reading, dry_run=True)
    assert read_file(dry, talk).added == 2
    with database.read() as db:
        assert db.value("SELECT count(*) FROM sessions") == 0
        assert watermarks.find(db, str(talk)) is None
    read_file(reading, talk)
    talk.write_bytes(line(1) + line(2) + line(3))
    counts = read_file(dry, talk)
    assert (counts.added, counts.known) in ((1, 0), (1, 2))
    assert texts(database) == ["line 1", "line 2"]
    assert read_file(ReadOptions(None, find_tiny), talk).added == 3


def test_a_child_s_transcript_makes_its_parent_known(reading, tmp_path, database):
    child, parent = tmp_path / "child.jsonl", tmp_path / "main.jsonl"
    child.write_bytes(line(1, parent="main", folder="/code/app"))
    read_file(reading, child)
    parent.write_bytes(line(1, title="Whole", branch="trunk", folder="/code/app"))
    read_file(reading, parent)
    with database.read() as db:
        found = {s.external_id: s for s in sessions.recent_sessions(db)}
    assert found["child"].parent_id == found["main"].id
    assert (found["main"].title, found["main"].branch) == ("Whole", "trunk")
    assert found["main"].project_id == found["child"].project_id is not None


def test_one_file_may_hold_several_sessions(reading, talk, database):
    talk.write_bytes(b"".join(line(i, session="ab"[i % 2]) for i in range(6)))
    counts = read_file(reading, talk)
    assert counts.sessions == {("tiny", "a"), ("tiny", "b")}
    assert texts(database, "a") == ["line 0", "line 2", "line 4"]
    assert texts(database, "b") == ["line 1", "line 3", "line 5"]


def test_a_write_that_fails_leaves_the_mark_with_what_is_stored(reading, talk, database, tmp_path):
    talk.write_bytes(line(1))
    read_file(reading, talk)
    append(talk, line(2))

    class Full:
        """A disk that is full when the second line comes."""

        def __getattr__(self, name: str) -> object:
            return getattr(database, name)

        def write(self, work: object) -> None:
            msg = "full"
            raise StoreFull(msg)

    with pytest.raises(StoreFull):
        read_file(replace(reading, database=Full()), talk)
    assert mark_of(database, talk).position == len(line(1))
    read_file(reading, talk)
    assert texts(database) == ["line 1", "line 2"]


def test_the_slower_of_two_readers_leaves_the_file_to_the_other(reading, talk, database):
    talk.write_bytes(line(1) + line(2))

    def overtake(path: Path, head: bytes) -> object:
        read_file(reading, talk)
        return find_tiny(path, head)

    slow = replace(reading, find_adapter=overtake)
    counts = read_file(slow, talk)
    assert (counts.added, counts.known) == (0, 0)
    assert texts(database) == ["line 1", "line 2"]


def test_a_long_file_is_written_in_batches(reading, talk, database):
    count = 27
    talk.write_bytes(b"".join(map(line, range(count))))
    told: list[int] = []
    read_file(replace(reading, progress=told.append, batch_messages=10), talk)
    assert len(told) == 3
    assert sum(told) == talk.stat().st_size
    assert texts(database) == [f"line {i}" for i in range(count)]


def test_an_archive_is_read_from_its_position_on(reading, tmp_path, database):
    path = tmp_path / "all.archive"
    path.write_text(json.dumps([["a", "b"], ["c"]]))
    counts = read_file(reading, path)
    assert (counts.added, counts.skipped) == (3, {"odd": 2})
    path.write_text(json.dumps([["a", "b"], ["c"], ["d"]]))
    counts = read_file(reading, path)
    assert (counts.added, counts.known) == (1, 0)
    assert texts(database, "s2") == ["d"]


def test_an_archive_that_breaks_off_gives_what_came_before(reading, tmp_path, database):
    path = tmp_path / "all.archive"
    path.write_text(json.dumps([["a"], ["b"], ["c"]]))
    broken = replace(reading, find_adapter=lambda path, head: TinyArchive(breaks_at=2))
    counts = read_file(broken, path)
    assert (counts.added, counts.problem, counts.news) == (2, "cannot be read: torn", True)
    assert not read_file(broken, path).news
    assert read_file(reading, path).added == 1
    assert texts(database, "s2") == ["c"]


def test_a_title_that_comes_last_is_the_session_s(reading, talk, database):
    talk.write_bytes(line(1))
    read_file(reading, talk)
    append(talk, b'{"title": "Herons"}\n')
    read_file(reading, talk)
    with database.read() as db:
        assert sessions.recent_sessions(db)[0].title == "Herons"


def test_no_secret_of_a_session_s_title_is_kept(reading, talk, database):
    secret = "ghp_" + "a1B2" * 9
    talk.write_bytes(line(1, title=f"use {secret}"))
    read_file(reading, talk)
    with database.read() as db:
        assert "[secret:" in sessions.recent_sessions(db)[0].title
    assert secret not in mark_of(database, talk).context


def test_no_secret_of_a_path_is_kept_and_the_file_is_known_again(reading, tmp_path, database):
    secret = "ghp_" + "a1B2" * 9
    (tmp_path / f"for-{secret}").mkdir()
    talk = tmp_path / f"for-{secret}" / f"{secret}.jsonl"
    talk.write_bytes(line(1))
    read_file(reading, talk)
    append(talk, line(2))
    counts = read_file(reading, talk)
    assert (counts.added, counts.known, counts.bytes) == (1, 0, len(line(2)))
    with database.read() as db:
        kept = [str(row) for row in db.rows("SELECT source, context FROM watermarks")]
    assert len(kept) == 1
    assert secret not in kept[0]


def test_a_watermark_that_still_has_a_secret_in_its_source_goes(reading, tmp_path, database):
    secret = "ghp_" + "a1B2" * 9
    talk = tmp_path / f"{secret}.jsonl"
    talk.write_bytes(line(1))
    read_file(replace(reading, redactor=Redactor(b"k" * 32, active=False)), talk)
    assert mark_of(database, talk).position == len(line(1))
    append(talk, line(2))
    assert read_file(reading, talk).bytes == len(line(2))
    with database.read() as db:
        assert watermarks.find(db, str(talk)) is None


def test_names_of_skipped_lines_and_problems_are_redacted(reading, tmp_path):
    secret = "ghp_" + "a1B2" * 9
    talk = tmp_path / f"{secret}.jsonl"
    talk.write_bytes(line(1) + line(2, role=secret) + b"not JSON\n")
    found = TranscriptFile(talk, talk.stat().st_size, named=True)
    told = capture_files(replace(reading, find_adapter=adapter_registry.find_adapter), [found])
    assert secret not in str(told)
    assert [problem.path.count("[secret:github:") for problem in told.problems] == [1]
    assert any("[secret:github:" in name for name in told.skipped)


def test_message_keys_are_redacted():
    secret = "ghp_" + "a1B2" * 9
    kept = Batch(FileCounts()).redacted(Context(state={secret: "open", "last": secret}))
    assert secret not in str(kept)
    assert kept.state["last"].startswith("[secret:github:")


def test_reading_can_be_stopped_between_batches_and_goes_on_from_there(reading, talk, database):
    talk.write_bytes(b"".join(line(i) for i in range(1, 8)))
    stopped = replace(reading, batch_messages=3, stopping=lambda: True)
    assert read_file(stopped, talk).added == 3
    assert read_file(stopped, talk).added == 3
    assert read_file(reading, talk).added == 1
    assert len(texts(database)) == 7


def test_first_request_is_the_title_of_an_untitled_session(reading, talk, database):
    talk.write_bytes(line(1, "hi") + line(2, "Please fix the login page, it shows a blank screen"))
    read_file(reading, talk)
    with database.read() as db:
        assert sessions.recent_sessions(db)[0].title.startswith("Please fix the login page")
    append(talk, b'{"title": "Herons"}\n')
    read_file(reading, talk)
    with database.read() as db:
        assert sessions.recent_sessions(db)[0].title == "Herons"


def queue_lines(folder: str = "/code/almanac") -> list[bytes]:
    """A prompt that is typed while Claude Code works, as its lines are written."""
    common = {"parentUuid": None, "sessionId": "talk", "cwd": folder}
    at = "2026-05-04T10:00:0{}Z".format
    operation = {"type": "queue-operation", "sessionId": "talk"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "I look."}]}
    asked = {"role": "user", "content": "Mend it."}
    lines = (
        {**common, "type": "user", "uuid": "u1", "timestamp": at(1), "message": asked},
        {**operation, "operation": "enqueue", "timestamp": at(2), "content": "check again"},
        {**operation, "operation": "remove", "timestamp": at(3)},
        {**common, "type": "assistant", "uuid": "u2", "timestamp": at(4), "message": answer},
    )
    return [json.dumps(one).encode() + b"\n" for one in lines]


def test_a_queued_prompt_is_stored_once_however_its_file_grows(reading, talk, database):
    reading = replace(reading, find_adapter=adapter_registry.find_adapter)
    for one in queue_lines():
        append(talk, one)
        read_file(reading, talk)
    stored = ["Mend it.", "check again", "I look."]
    assert texts(database) == stored
    assert "check again" not in mark_of(database, talk).context
    database.write(lambda db: watermarks.remove(db, str(talk)))
    counts = read_file(reading, talk)
    assert (counts.added, counts.known) == (0, 3)
    assert texts(database) == stored


def test_a_queued_prompt_of_an_excluded_folder_is_in_no_watermark(reading, talk, database):
    reading = replace(
        reading, find_adapter=adapter_registry.find_adapter, exclude=("/code/secret",)
    )
    for folder, is_stored in (("/code/almanac", True), ("/code/secret", False)):
        path = talk.with_name(f"{Path(folder).name}.jsonl")
        path.write_bytes(b"".join(queue_lines(folder)[:2]))
        read_file(reading, path)
        assert ("check again" in mark_of(database, path).context) is is_stored


def test_a_file_that_no_adapter_fits_is_named_with_the_reason(reading, tmp_path):
    contents = {
        "a.jsonl": b'{"ts": 1, "dir": "meta"}\n',
        "b.gz": b"\x1f\x8b\x08 packed",
        "c.txt": b"not for agents",
        "d.bin": b"\x01\0\x02",
        "e.jsonl": b"",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    reading = replace(reading, find_adapter=lambda path, head: None)
    files = find_files([tmp_path], adapter_registry.ADAPTERS, tmp_path)
    result = capture_files(reading, [file for file in files if file.path.name in contents])
    assert result.passed_over == 5
    assert {Path(one.path).name: one.problem for one in result.unrecognized} == {
        "a.jsonl": "no agent is known whose lines begin with the fields 'ts', 'dir'",
        "b.gz": "it is compressed; unpack it first",
        "c.txt": "its first line is no JSON object",
        "d.bin": "it is no text",
        "e.jsonl": "it is empty",
    }
    named = capture_files(reading, [TranscriptFile(tmp_path / "c.txt", 14, named=True)])
    assert named.problems[0].problem == f"{UNKNOWN}: its first line is no JSON object"

"""The log file: events with fields, renewed when large, followed through renewals."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.daemon import log_file
from lore.daemon.log_file import REPEATS, REPEATS_S, RepeatFilter

log = logging.getLogger("lore.test")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    close = log_file.open_log(tmp_path, echo=False)
    yield tmp_path
    close()


def test_an_event_is_one_line_with_its_fields(home: Path):
    log.info("task done", extra={"task": "embed", "took_s": 0.12345, "file": "a b\nc"})
    (line,) = log_file.last_lines(home, 10)
    assert line.endswith('info    lore.test: task done task=embed took_s=0.123 file="a b\\nc"')
    assert line[:2] == "20"


def test_events_of_libraries_are_logged_by_place_only(home: Path):
    forged = "hunter2\n2026-01-01T00:00:00Z warning lore.http: forged"
    other = logging.getLogger("mcp.server.sse")
    other.warning("Received invalid session ID: %s", forged)
    other.info("Terminating session: hunter2")
    try:
        int(forged)
    except ValueError:
        other.exception("Failed to parse %s", forged)
    logging.warning(forged)  # noqa: LOG015 - some libraries do that
    lines = log_file.last_lines(home, 10)
    assert [" ".join(line.split()[1:4]) for line in lines] == [
        "warning mcp.server.sse: said", "error mcp.server.sse: said", "warning root: said",
    ]  # fmt: skip
    assert "error=ValueError" in lines[1]
    assert "hunter2" not in str(lines)
    assert "forged" not in str(lines)


def test_no_library_gets_an_output_of_its_own(home: Path):
    before = list(logging.getLogger().handlers)
    logging.basicConfig()
    logging.debug("hunter2")  # noqa: LOG015 - makes an output where there is none
    assert logging.getLogger().handlers == before
    assert log_file.last_lines(home, 10) == []


def test_a_multi_line_event_is_one_line(home: Path):
    log.warning("a\nb \x1b[31m")
    (line,) = log_file.last_lines(home, 10)
    assert line.endswith('"a\\nb \\u001b[31m"')


def test_uncaught_errors_are_logged_without_their_message(home: Path):
    quoted = "hunter2\nnext"

    def fail() -> None:
        raise ValueError(quoted)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    warnings.showwarning("hunter2", ResourceWarning, "somewhere.py", 1)
    (first, second) = log_file.last_lines(home, 10)
    assert "thread failed error=ValueError place=test_log_file.py:" in first
    assert "py.warnings: said something" in second
    assert "hunter2" not in first + second


def test_the_log_is_private_and_rotated(home: Path):
    for number in range(log_file.LARGEST_BYTES // 10_000 * 4):
        log.info("x" * 9_900, extra={"number": number})
    sizes = {path.name: path.stat() for path in home.iterdir()}
    assert sorted(sizes) == ["lore.log", "lore.log.1", "lore.log.2"]
    assert all(found.st_size <= log_file.LARGEST_BYTES for found in sizes.values())
    assert all(found.st_mode & 0o777 == 0o600 for found in sizes.values())


def test_last_lines_include_the_rotated_log(tmp_path: Path):
    (tmp_path / "lore.log.1").write_text("one\ntwo\n")
    (tmp_path / "lore.log").write_text("three\n")
    assert log_file.last_lines(tmp_path, 2) == ["two", "three"]
    assert log_file.last_lines(tmp_path, 0) == []
    assert log_file.last_lines(tmp_path / "none", 5) == []


def test_follow_continues_after_a_rotation(tmp_path: Path):
    path = tmp_path / "lore.log"
    path.write_text("old\n")
    steps = iter([
        lambda: path.write_text("old\none\nha"),
        lambda: path.write_text("old\none\nhalf\n"),
        lambda: path.rename(tmp_path / "lore.log.1"),
        lambda: path.write_text("three\n"),
    ])
    lines = log_file.follow(tmp_path, lambda _seconds: next(steps)())
    assert [next(lines) for _ in range(3)] == ["one", "half", "three"]


def test_nothing_is_logged_once_the_log_is_closed(tmp_path: Path):
    log_file.open_log(tmp_path, echo=False)()
    log.info("late")
    assert log_file.last_lines(tmp_path, 5) == []


class Ticks:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def event(level: int = logging.WARNING, name: str = "lore.http", **fields: object):
    return logging.makeLogRecord({
        "name": name,
        "levelno": level,
        "levelname": "X",
        "msg": "failed",
        **fields,
    })


def test_a_repeated_warning_is_logged_ten_times_and_then_counted():
    ticks = Ticks()
    repeats = RepeatFilter(ticks)
    let_through = [repeats.filter(event(error="OSError")) for _ in range(100)]
    assert let_through == [True] * REPEATS + [False] * (100 - REPEATS)
    ticks.now_s = REPEATS_S + 1
    late = event(error="OSError")
    assert repeats.filter(late)
    assert vars(late)["left_out"] == 100 - REPEATS


def test_other_warnings_and_infos_are_always_logged():
    repeats = RepeatFilter(Ticks())
    for _ in range(100):
        repeats.filter(event(error="OSError"))
    assert repeats.filter(event(error="ValueError"))
    assert all(repeats.filter(event(logging.INFO)) for _ in range(100))


def test_the_number_of_tracked_warnings_is_limited():
    repeats = RepeatFilter(Ticks())
    assert all(repeats.filter(event(number=number)) for number in range(5_000))
    assert len(repeats._seen) <= 200

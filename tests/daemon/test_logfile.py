"""The log file: events with fields, renewed when large, followed through renewals."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.daemon import logfile

log = logging.getLogger("lore.test")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    close = logfile.open_log(tmp_path, echo=False)
    yield tmp_path
    close()


def test_an_event_is_one_line_with_its_fields(home: Path):
    log.info("chore done", extra={"chore": "embed", "took_s": 0.12345, "file": "a b\nc"})
    (line,) = logfile.last_lines(home, 10)
    assert line.endswith('info    lore.test: chore done chore=embed took_s=0.123 file="a b\\nc"')
    assert line[:2] == "20"


def test_the_log_is_for_its_owner_only_and_is_renewed(home: Path):
    for number in range(logfile.LARGEST_BYTES // 100 * 4):
        log.info("x" * 90, extra={"number": number})
    sizes = {path.name: path.stat() for path in home.iterdir()}
    assert sorted(sizes) == ["lore.log", "lore.log.1", "lore.log.2"]
    assert all(found.st_size <= logfile.LARGEST_BYTES for found in sizes.values())
    assert all(found.st_mode & 0o777 == 0o600 for found in sizes.values())


def test_the_last_lines_reach_into_an_old_log(tmp_path: Path):
    (tmp_path / "lore.log.1").write_text("one\ntwo\n")
    (tmp_path / "lore.log").write_text("three\n")
    assert logfile.last_lines(tmp_path, 2) == ["two", "three"]
    assert logfile.last_lines(tmp_path, 0) == []
    assert logfile.last_lines(tmp_path / "none", 5) == []


def test_a_log_is_followed_through_its_renewal(tmp_path: Path):
    path = tmp_path / "lore.log"
    path.write_text("old\n")
    steps = iter([
        lambda: path.write_text("old\none\nha"),
        lambda: path.write_text("old\none\nhalf\n"),
        lambda: path.rename(tmp_path / "lore.log.1"),
        lambda: path.write_text("three\n"),
    ])
    lines = logfile.follow(tmp_path, lambda _seconds: next(steps)())
    assert [next(lines) for _ in range(3)] == ["one", "half", "three"]


def test_nothing_is_logged_once_the_log_is_closed(tmp_path: Path):
    logfile.open_log(tmp_path, echo=False)()
    log.info("late")
    assert logfile.last_lines(tmp_path, 5) == []

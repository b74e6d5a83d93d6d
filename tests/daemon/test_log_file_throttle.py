"""The same trouble again and again does not fill the log."""

from __future__ import annotations

import logging

from lore.daemon.log_file import REPEATS, REPEATS_S, RepeatFilter


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


def test_the_same_trouble_is_told_some_times_and_then_counted():
    ticks = Ticks()
    repeats = RepeatFilter(ticks)
    let_through = [repeats.filter(event(error="OSError")) for _ in range(100)]
    assert let_through == [True] * REPEATS + [False] * (100 - REPEATS)
    ticks.now_s = REPEATS_S + 1
    late = event(error="OSError")
    assert repeats.filter(late)
    assert vars(late)["left_out"] == 100 - REPEATS


def test_other_trouble_is_told_and_so_is_what_is_none():
    repeats = RepeatFilter(Ticks())
    for _ in range(100):
        repeats.filter(event(error="OSError"))
    assert repeats.filter(event(error="ValueError"))
    assert all(repeats.filter(event(logging.INFO)) for _ in range(100))


def test_trouble_without_number_is_not_all_remembered():
    repeats = RepeatFilter(Ticks())
    assert all(repeats.filter(event(number=number)) for number in range(5_000))
    assert len(repeats._seen) <= 200

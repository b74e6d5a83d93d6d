from __future__ import annotations

import pytest

from lore.http.hooks import DEDUP_WINDOW_S, HookDeduplicator


class Hours:
    """A clock that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_said_is_said_once_for_a_while():
    clock = Hours()
    once = HookDeduplicator(clock)
    assert once.run_once(b"a", lambda: "told") == "told"
    assert once.run_once(b"a", lambda: "told") == ""
    assert once.run_once(b"b", lambda: "told") == "told"
    clock.now = DEDUP_WINDOW_S
    assert once.run_once(b"a", lambda: "told") == "told"


def test_who_was_told_nothing_may_ask_again():
    once = HookDeduplicator()
    assert once.run_once(b"a", lambda: "") == ""
    assert once.run_once(b"a", lambda: "told") == "told"


def test_what_is_under_way_is_not_begun_again():
    once = HookDeduplicator()
    assert once.run_once(b"a", lambda: once.run_once(b"a", lambda: "inner") or "outer") == "outer"


def test_an_error_is_no_answer():
    once = HookDeduplicator()
    with pytest.raises(ZeroDivisionError):
        once.run_once(b"a", lambda: str(1 / 0))
    assert once.run_once(b"a", lambda: "told") == "told"

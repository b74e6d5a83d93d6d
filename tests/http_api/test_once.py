from __future__ import annotations

import pytest

from lore.http.once import LASTING_S, Once


class Hours:
    """A clock that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_said_is_said_once_for_a_while():
    clock = Hours()
    once = Once(clock)
    assert once.answer(b"a", lambda: "told") == "told"
    assert once.answer(b"a", lambda: "told") == ""
    assert once.answer(b"b", lambda: "told") == "told"
    clock.now = LASTING_S
    assert once.answer(b"a", lambda: "told") == "told"


def test_who_was_told_nothing_may_ask_again():
    once = Once()
    assert once.answer(b"a", lambda: "") == ""
    assert once.answer(b"a", lambda: "told") == "told"


def test_what_is_under_way_is_not_begun_again():
    once = Once()
    assert once.answer(b"a", lambda: once.answer(b"a", lambda: "inner") or "outer") == "outer"


def test_an_error_is_no_answer():
    once = Once()
    with pytest.raises(ZeroDivisionError):
        once.answer(b"a", lambda: str(1 / 0))
    assert once.answer(b"a", lambda: "told") == "told"

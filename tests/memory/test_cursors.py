from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.memory import cursors

whole = st.integers(-(2**62), 2**62)


@given(st.tuples(whole, st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=30)))
def test_a_key_comes_back_from_its_cursor(key: tuple[int, float, str]):
    cursor = cursors.written(key)
    assert cursor.isascii()
    assert tuple(cursors.read(cursor, int, float, str)) == key


@given(st.text(min_size=1, max_size=80))
def test_what_is_no_cursor_is_refused_or_is_read_as_its_kinds(text: str):
    try:
        key = cursors.read(text, int, int)
    except InvalidInput:
        return
    assert [type(part) for part in key] == [int, int]


def test_the_beginning_has_no_key():
    assert cursors.read("", int) == []


def test_a_cursor_of_another_list_is_refused():
    cursor = cursors.written((1, 2))
    for kinds in ((int,), (int, str), (int, int, int)):
        with pytest.raises(InvalidInput, match="no cursor"):
            cursors.read(cursor, *kinds)


def test_only_a_full_page_goes_on():
    rows = [((n,), n) for n in range(3)]
    assert cursors.page_of(rows, 3).next
    assert cursors.page_of(rows, 4).next is None
    assert cursors.page_of([], 1).items == ()

"""Pages and cursors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory, context
from lore.memory.context import MAX_PAGE_SIZE
from tests.recall.talk import say

whole = st.integers(-(2**62), 2**62)


@given(st.tuples(whole, st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=30)))
def test_cursor_round_trips_a_key(key: tuple[int, float, str]):
    cursor = context.encode_cursor(key)
    assert cursor.isascii()
    assert tuple(context.decode_cursor(cursor, int, float, str)) == key


@given(st.text(min_size=1, max_size=80))
def test_malformed_cursor_is_refused_or_typed(text: str):
    try:
        key = context.decode_cursor(text, int, int)
    except InvalidInput:
        return
    assert [type(part) for part in key] == [int, int]


def test_empty_cursor_has_no_key():
    assert context.decode_cursor("", int) == []


def test_a_cursor_of_another_list_is_refused():
    cursor = context.encode_cursor((1, 2))
    for kinds in ((int,), (int, str), (int, int, int)):
        with pytest.raises(InvalidInput, match="not valid"):
            context.decode_cursor(cursor, *kinds)


def test_only_a_full_page_has_a_next_cursor():
    rows = [((n,), n) for n in range(3)]
    assert context.page_of(rows, 3).next
    assert context.page_of(rows, 4).next is None
    assert context.page_of([], 1).items == ()


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as opened:
        yield opened


def test_pages_cover_the_list_without_gaps(memory: Memory):
    ids = [memory.store(f"heron {place}") for place in range(5)]
    first = memory.knowledge.page_of_fragments(limit=2)
    assert first.next
    second = memory.knowledge.page_of_fragments(limit=2, cursor=first.next)
    assert second.next
    last = memory.knowledge.page_of_fragments(limit=2, cursor=second.next)
    found = [one.id for page in (first, second, last) for one in page.items]
    assert found == ids[::-1]
    assert last.next is None


def test_page_size_is_limited_and_cursors_belong_to_one_list(memory: Memory):
    for limit in (0, MAX_PAGE_SIZE + 1):
        with pytest.raises(InvalidInput):
            memory.knowledge.page_of_fragments(limit=limit)
    say(memory, "s", "one", "two", "three")
    cursor = memory.sessions.page_of_messages("s", limit=1).next
    assert cursor
    with pytest.raises(InvalidInput, match="not valid for this list"):
        memory.sessions.page_of_sessions(cursor=cursor)


def test_messages_of_a_part_of_a_session_are_paged(memory: Memory):
    ids = say(memory, "s", "one", "two", "three", "four", "five")
    page = memory.sessions.page_of_messages("s", first=1, last=3, limit=2)
    assert page.next
    rest = memory.sessions.page_of_messages("s", first=1, last=3, limit=2, cursor=page.next)
    assert [one.id for one in (*page.items, *rest.items)] == ids[1:4]
    assert rest.next is None


def test_item_of_another_type_is_not_found(memory: Memory):
    [said] = say(memory, "s", "one")
    assert memory.sessions.message(said).id == said
    with pytest.raises(NotFound):
        memory.knowledge.fragment(said)

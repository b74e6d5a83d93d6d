from __future__ import annotations

from pathlib import Path

import pytest

from lore.embed.none import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.memory.listing import MOST_ON_A_PAGE
from tests.recall.talk import say


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as opened:
        yield opened


def test_a_list_goes_on_behind_its_last_item_until_it_ends(memory: Memory):
    ids = [memory.store(f"heron {place}") for place in range(5)]
    first = memory.page_of_fragments(limit=2)
    assert first.next
    second = memory.page_of_fragments(limit=2, cursor=first.next)
    assert second.next
    last = memory.page_of_fragments(limit=2, cursor=second.next)
    found = [one.id for page in (first, second, last) for one in page.items]
    assert found == ids[::-1]
    assert last.next is None


def test_a_page_has_bounds_and_a_cursor_is_of_its_own_list(memory: Memory):
    for limit in (0, MOST_ON_A_PAGE + 1):
        with pytest.raises(InvalidInput):
            memory.page_of_fragments(limit=limit)
    say(memory, "s", "one", "two", "three")
    cursor = memory.page_of_messages("s", limit=1).next
    assert cursor
    with pytest.raises(InvalidInput, match="no cursor of this list"):
        memory.page_of_sessions(cursor=cursor)


def test_an_item_of_another_sort_is_not_found(memory: Memory):
    [said] = say(memory, "s", "one")
    assert memory.message(said).id == said
    with pytest.raises(NotFound):
        memory.fragment(said)

from __future__ import annotations

from lore.memory import Memory
from lore.recall.paths import find_path
from lore.store import items


def numbers(memory: Memory, *ids: str) -> list[int]:
    with memory.database.read() as db:
        return [items.resolve(db, id_).n for id_ in ids]


def path(memory: Memory, seed: str, hit: str) -> tuple[str, ...]:
    a, b = numbers(memory, seed, hit)
    with memory.database.read() as db:
        return find_path(db, [a], b)


def test_a_drawn_edge_is_named_by_its_kind(memory: Memory):
    a, b = memory.store("The alarm rang"), memory.store("Batteries were replaced")
    memory.link(b, a, "example_of")
    assert path(memory, a, b) == ("The alarm rang", "example of", "Batteries were replaced")


def test_what_two_mention_links_them_by_its_name(memory: Memory):
    a = memory.store("Odile Brandt leads the team", summary="The team")
    b = memory.store("The berth was painted by Odile Brandt", summary="The berth")
    assert path(memory, a, b) == ("The team", "odile brandt", "The berth")


def test_a_way_may_lead_through_one_other(memory: Memory):
    a, b, c = memory.store("one"), memory.store("two"), memory.store("three")
    memory.link(a, b, "supports")
    memory.link(b, c, "related_to")
    assert path(memory, a, c) == ("one", "supports", "two", "related to", "three")
    memory.delete(b)
    assert path(memory, a, c) == ()


def test_what_hangs_together_with_nothing_has_no_path(memory: Memory):
    assert path(memory, memory.store("one"), memory.store("two")) == ()

from __future__ import annotations

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.text import tokens
from lore.tools.catalogue import call
from lore.tools.tool import Caller
from lore.tools.trees import OUTLINE_TOKENS, ExploreResult, NamedResult


def test_an_outline_shows_each_fragment_after_its_parent(memory: Memory):
    top = memory.store("Deploys")
    middle = memory.store("Staging comes first", parent_id=top)
    low = memory.store("Staging is called heron", parent_id=middle)
    outcome = call(memory, "explore", {"id": top}, Caller())
    assert isinstance(outcome.data, ExploreResult)
    assert [(one.level, one.id) for one in outcome.data.branches] == [
        (0, top),
        (1, middle),
        (2, low),
    ]
    outcome = call(memory, "explore", {"query": "heron", "max_depth": 0}, Caller())
    assert isinstance(outcome.data, ExploreResult)
    assert [one.id for one in outcome.data.branches] == [low]


def test_a_large_outline_says_how_much_is_missing(memory: Memory):
    top = memory.store("Deploys")
    for place in range(120):
        memory.store(f"Step {place} of a deploy takes a while and is done by hand", parent_id=top)
    text = call(memory, "explore", {"id": top}, Caller()).text
    assert tokens.count(text) <= OUTLINE_TOKENS
    assert "more: explore(id=…)" in text


@pytest.mark.parametrize("given", [{}, {"query": "x", "id": "01a1e003-d3de"}])
def test_an_outline_is_of_an_id_or_of_a_question(memory: Memory, given: dict[str, object]):
    with pytest.raises(InvalidInput, match="either 'query' or 'id'"):
        call(memory, "explore", given, Caller())


def test_one_step_leads_to_children_parent_and_associations(memory: Memory):
    top = memory.store("Deploys")
    low = memory.store("Staging comes first", parent_id=top)
    beside = memory.store("Tests")
    memory.link(top, beside, "associative")

    def step(id_: str, direction: str) -> list[str]:
        data = call(memory, "traverse", {"id": id_, "direction": direction}, Caller()).data
        assert isinstance(data, NamedResult)
        return [one.id for one in data.fragments]

    assert step(top, "children") == [low]
    assert step(low, "parent") == [top]
    assert step(top, "associations") == [beside]
    assert call(memory, "traverse", {"id": low}, Caller()).text == "No children."
    with pytest.raises(NotFound, match="root"):
        step(top, "parent")


def test_roots_come_with_how_many_children_they_have(memory: Memory):
    assert call(memory, "list_roots", {}, Caller()).text == "The memory is empty."
    top = memory.store("Deploys")
    memory.store("Staging comes first", parent_id=top)
    data = call(memory, "list_roots", {"query": "staging"}, Caller()).data
    assert isinstance(data, NamedResult)
    assert [(one.id, one.children) for one in data.fragments] == [(top, 1)]

"""The tools explore, traverse, list_roots and timeline."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.text import tokens
from lore.tools.browse_tools import OUTLINE_TOKENS, ExploreResult, NamedResult, TimelineResult
from lore.tools.tool import Caller
from lore.tools.tool_registry import call_tool
from tests.fakes import NOON
from tests.recall.talk import say


def test_an_outline_shows_each_fragment_after_its_parent(memory: Memory):
    top = memory.store("Deploys")
    middle = memory.store("Staging comes first", parent_id=top)
    low = memory.store("Staging is called heron", parent_id=middle)
    outcome = call_tool(memory, "explore", {"id": top}, Caller())
    assert isinstance(outcome.data, ExploreResult)
    assert [(one.level, one.id) for one in outcome.data.branches] == [
        (0, top),
        (1, middle),
        (2, low),
    ]
    outcome = call_tool(memory, "explore", {"query": "heron", "max_depth": 0}, Caller())
    assert isinstance(outcome.data, ExploreResult)
    assert [one.id for one in outcome.data.branches] == [low]


def test_a_large_outline_says_how_much_is_missing(memory: Memory):
    top = memory.store("Deploys")
    for place in range(120):
        memory.store(f"Step {place} of a deploy takes a while and is done by hand", parent_id=top)
    text = call_tool(memory, "explore", {"id": top}, Caller()).text
    assert tokens.count(text) <= OUTLINE_TOKENS
    assert "more: explore(id=…)" in text


@pytest.mark.parametrize("given", [{}, {"query": "x", "id": "01a1e003-d3de"}])
def test_explore_needs_either_id_or_query(memory: Memory, given: dict[str, object]):
    with pytest.raises(InvalidInput, match="either 'query' or 'id'"):
        call_tool(memory, "explore", given, Caller())


def test_traverse_tool_returns_each_direction(memory: Memory):
    top = memory.store("Deploys")
    low = memory.store("Staging comes first", parent_id=top)
    beside = memory.store("Tests")
    memory.knowledge.link(top, beside, "associative")

    def step(id_: str, direction: str) -> list[str]:
        data = call_tool(memory, "traverse", {"id": id_, "direction": direction}, Caller()).data
        assert isinstance(data, NamedResult)
        return [one.id for one in data.fragments]

    assert step(top, "children") == [low]
    assert step(low, "parent") == [top]
    assert step(top, "associations") == [beside]
    assert call_tool(memory, "traverse", {"id": low}, Caller()).text == "No children."
    with pytest.raises(NotFound, match="root"):
        step(top, "parent")


def test_roots_have_children_counts(memory: Memory):
    assert call_tool(memory, "list_roots", {}, Caller()).text == "The memory is empty."
    top = memory.store("Deploys")
    memory.store("Staging comes first", parent_id=top)
    data = call_tool(memory, "list_roots", {"query": "staging"}, Caller()).data
    assert isinstance(data, NamedResult)
    assert [(one.id, one.children) for one in data.fragments] == [(top, 1)]


def test_timeline_shows_messages_around_a_message(memory: Memory):
    ids = say(memory, "a", *(f"word {place}" for place in range(9)), title="Counting")
    say(memory, "b", "elsewhere at the same time")
    outcome = call_tool(memory, "timeline", {"anchor": ids[4], "before": 2, "after": 1}, Caller())
    assert isinstance(outcome.data, TimelineResult)
    assert [one.id for one in outcome.data.happened] == ids[2:6]
    lines = outcome.text.split("\n")
    assert "Counting" in lines[2]
    assert [line[0] for line in lines[3:-1]] == [" ", " ", "*", " "]


def test_timeline_of_forty_entries_stays_short(memory: Memory):
    ids = say(memory, "a", *("many words " * 200 for _ in range(41)))
    text = call_tool(
        memory, "timeline", {"anchor": ids[20], "before": 20, "after": 20}, Caller()
    ).text
    assert tokens.count(text) <= 1_600


def test_timeline_around_now_shows_latest_entries(memory: Memory):
    say(memory, "a", "the last word", at=NOON - timedelta(hours=1))
    assert "the last word" in call_tool(memory, "timeline", {"anchor": "now"}, Caller()).text


def test_timeline_without_anchor_shows_recent_work_and_decisions(memory: Memory):
    memory.tasks.start("Mend the tide table of March")
    memory.tasks.end(outcome="success")
    memory.store("We print the tide table on Mondays", kind="decision", origin="user")
    outcome = call_tool(memory, "timeline", {}, Caller())
    assert "Mend the tide table of March (success)" in outcome.text
    assert "We print the tide table on Mondays" in outcome.text


def test_timeline_of_empty_time_is_empty(memory: Memory):
    text = call_tool(memory, "timeline", {"anchor": "2026-05-01"}, Caller()).text
    assert text == "Nothing happened around that time."

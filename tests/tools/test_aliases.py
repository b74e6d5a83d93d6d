from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.settings import load
from lore.tools.aliases import ALIASES
from lore.tools.catalogue import call
from lore.tools.tool import Caller
from tests.fakes import FakeEmbedder


@pytest.fixture
def aliased(tmp_path: Path) -> Iterator[Memory]:
    """Return a memory whose tools are served under other names, too."""
    config = replace(load({}, home=tmp_path / "home").settings, mcp_aliases=True)
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


def test_the_names_are_those_that_agents_know():
    assert [alias.name for alias in ALIASES] == [
        "query_memory", "explore_memory", "traverse_memory", "store_memory", "list_topics",
        "memory_save", "memory_search", "memory_delete",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("alias", "given", "tool", "meant"),
    [
        ("query_memory", {"topic": "heron", "limit": 3}, "search", {"query": "heron", "limit": 3}),
        ("explore_memory", {"topic": "heron"}, "explore", {"query": "heron"}),
        ("list_topics", {}, "list_roots", {}),
        ("memory_search", {"query": "heron"}, "search", {"query": "heron"}),
    ],
)
def test_an_alias_does_what_its_tool_does(
    aliased: Memory,
    alias: str,
    given: dict[str, object],
    tool: str,
    meant: dict[str, object],
):
    aliased.store("The staging server is called heron")
    assert call(aliased, alias, given, Caller()) == call(aliased, tool, meant, Caller())


def test_a_life_under_other_names(aliased: Memory):
    given = {"content": "Deploys are on Thursdays", "summary": "Deploys", "parent_id": None}
    call(aliased, "store_memory", {**given, "depth": 2}, Caller())
    (top,) = aliased.roots()
    given = {"content": "At nine", "summary": "", "parent_id": top.id}
    call(aliased, "store_memory", {**given, "depth": 3}, Caller())
    step = {"fragment_id": top.id, "direction": "children"}
    assert "At nine" in call(aliased, "traverse_memory", step, Caller()).text
    call(aliased, "memory_save", {"content": "Lunch is at noon"}, Caller())
    assert call(aliased, "memory_delete", {"id": top.id}, Caller()).text.startswith("Deleted")


def test_a_wrong_argument_is_refused_in_the_words_of_the_alias(aliased: Memory):
    with pytest.raises(InvalidInput, match="query_memory\\(\\) needs 'topic'") as refused:
        call(aliased, "query_memory", {}, Caller())
    assert refused.value.hint == "query_memory() takes topic, depth, limit."


def test_aliases_are_not_served_unless_they_are_wanted(memory: Memory):
    with pytest.raises(NotFound, match="no tool 'query_memory'"):
        call(memory, "query_memory", {"topic": "x"}, Caller())

"""Tools by hand: the same catalogue that agents use."""

from __future__ import annotations

import json

from lore.tools import tool_registry
from tests.cli.conftest import Lore


def test_the_tools_of_agents_are_listed(lore: Lore):
    told = json.loads(lore("tool", "--json").works().out)
    assert list(told) == [tool.name for tool in tool_registry.TOOLS]


def test_a_tool_stores_and_another_finds_it(lore: Lore):
    lore("tool", "store", "content=Deploys go through ops/deploy.sh", "importance=0.9").works()
    found = lore("tool", "recall", "query=how do we deploy?", "limit=1").works()
    assert "ops/deploy.sh" in found.out
    told = json.loads(lore("tool", "search", "query=deploys", "--json").works().out)
    assert told["hits"]


def test_an_invalid_tool_argument_is_reported(lore: Lore):
    lore("remember", "Deploys go through ops/deploy.sh").works()
    lore("tool", "recall", "question=x").fails_with(2)
    lore("tool", "recall", "query").fails_with(2)
    lore("tool", "nonsense").fails_with(3)

from __future__ import annotations

import pytest

from lore.text.own_tools import is_own


@pytest.mark.parametrize(
    "name",
    [
        "mcp__lore__recall",
        "mcp__plugin_lore_lore__store",
        "lore_recall",
        "lore.recall",
        "lore__read",
    ],
)
def test_lores_own_tools_are_known_by_the_names_that_agents_give_them(name: str):
    assert is_own(name)


@pytest.mark.parametrize(
    "name", ["", "Bash", "recall", "mcp__folklore__recall", "mcp__explore__read", "explore", "lore"]
)
def test_no_other_tool_is_taken_for_one_of_them(name: str):
    assert not is_own(name)

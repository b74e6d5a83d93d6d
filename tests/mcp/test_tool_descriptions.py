from __future__ import annotations

import re

from lore.mcp import server
from lore.tools.tool_registry import TOOLS, find_tool


def test_a_tool_is_described_as_it_describes_itself():
    for tool in TOOLS:
        told = server.describe_tool(tool, structured=False)
        assert (told.name, told.title, told.description) == (
            tool.name, tool.title, tool.description,
        )  # fmt: skip
        assert told.output_schema is None
        assert told.annotations
        assert told.annotations.read_only_hint == tool.reads_only
        assert server.describe_tool(tool, structured=True).output_schema


def test_what_the_instructions_call_is_a_tool():
    named = re.findall(r"(\w+)\(", server.INSTRUCTIONS)
    assert {"recall", "search", "read", "store"} <= set(named)
    assert [name for name in named if find_tool(name) is None] == []


def test_resources_and_prompts_have_names_of_their_own():
    names = [one.name for one in (*server.RESOURCES, *server.TEMPLATES)]
    assert names == ["index", "timeline", "fragment"]
    assert [one.name for one in server.PROMPTS] == ["recall", "remember"]

"""TODO."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from lore.text import tokens
from lore.tools.tool import Arguments, Caller, Result, Seen, input_schema, output_schema
from lore.tools.tool_registry import ALIASES, TOOLS, find_tool


class Wish(Arguments):
    text: str = ""


class Told(Result):
    text: Seen


def test_arguments_are_what_they_name_and_have_an_end():
    with pytest.raises(ValidationError):
        Wish.model_validate({"words": "x"})
    with pytest.raises(ValidationError):
        Wish.model_validate({"text": "x" * 200_001})


def test_what_nobody_sees_does_not_reach_a_model_in_data():
    assert Told(text="Deploy\u200b on Thursdays\u2062").text == "Deploy on Thursdays"


def test_who_says_nothing_of_itself_is_an_assistant():
    assert Caller() == Caller(project="", session="", origin="assistant", within_s=None)


def test_what_changes_nothing_destroys_nothing():
    assert [tool.name for tool in TOOLS if tool.reads_only and tool.destructive] == []


CORE_TOKENS = 2_000
"""What listing the core tools costs a session at most, descriptions and arguments."""


@pytest.mark.parametrize("tool", [*TOOLS, *ALIASES], ids=lambda tool: tool.name)
def test_a_schema_has_every_argument_and_no_titles(tool):
    schema = input_schema(tool)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == list(tool.arguments.model_fields)
    for told in schema["properties"].values():
        assert "title" not in told
        assert "anyOf" not in told


def test_a_property_that_is_called_title_stays():
    search = find_tool("search")
    assert search
    schema = output_schema(search)
    assert schema["$defs"]["Found"]["properties"]["title"] == {"type": "string"}


def test_what_may_be_null_in_a_result_says_so():
    store = find_tool("store")
    assert store
    assert {"type": "null"} in output_schema(store)["properties"]["parent"]["anyOf"]


def test_listing_the_core_tools_is_cheap():
    told = [
        tool.description + json.dumps(input_schema(tool))
        for tool in TOOLS
        if tool.profile == "core"
    ]
    assert sum(map(tokens.count, told)) <= CORE_TOKENS

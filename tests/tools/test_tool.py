"""Tool definitions, their JSON Schemas and callers."""

from __future__ import annotations

import json
from datetime import timedelta
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from lore.memory import Memory
from lore.records import Grant
from lore.text import tokens
from lore.tools.tool import (
    GRANT,
    Arguments,
    Caller,
    Result,
    Seen,
    caller_of,
    find_grant,
    find_session,
    input_schema,
    output_schema,
)
from lore.tools.tool_registry import ALIASES, TOOLS, find_tool
from tests.fakes import NOON
from tests.recall.talk import say


class Wish(Arguments):
    text: str = ""


class Told(Result):
    text: Seen


def test_arguments_refuse_unknown_names_and_huge_texts():
    with pytest.raises(ValidationError):
        Wish.model_validate({"words": "x"})
    with pytest.raises(ValidationError):
        Wish.model_validate({"text": "x" * 200_001})


def test_hidden_characters_are_stripped_from_data():
    assert Told(text="Deploy\u200b on Thursdays\u2062").text == "Deploy on Thursdays"


def test_default_caller_is_assistant():
    assert Caller() == Caller(project="", session="", origin="assistant", within_s=None)


def test_read_only_tools_are_not_destructive():
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


def test_nullable_results_declare_null():
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


KEY = Grant("key", frozenset({"read"}))
BROWSER = Grant("browser", frozenset({"read"}), browser=True)


def test_headers_tell_the_folder_and_the_session_of_a_caller():
    headers = {"x-lore-project": quote("/code/größe"), "x-lore-session": "s%201"}
    assert caller_of(headers, KEY) == Caller(
        project="/code/größe", session="s 1", keyed=True, grant=KEY, may_write=False
    )


def test_what_comes_by_cookie_is_the_persons_word():
    assert caller_of({}, BROWSER).origin == "user"
    assert caller_of({}, KEY).origin == caller_of({}, None).origin == "assistant"


@pytest.mark.parametrize(
    ("said", "within_s"), [("", None), ("150", 0.15), ("-1", None), ("²", None), ("9" * 9, None)]
)
def test_a_caller_may_say_how_long_it_waits(said: str, within_s: float | None):
    assert caller_of({"x-lore-within-ms": said}, KEY).within_s == within_s


def test_a_request_that_passed_no_gate_has_no_grant():
    assert find_grant({}) is None
    assert find_grant({GRANT: KEY}) is KEY


HERE = Caller(project="/code/a")


def found(memory: Memory, caller: Caller) -> str:
    """Return the agent's own name of the session that a caller has."""
    session = find_session(memory, caller)
    return next((one.external_id for one in memory.sessions() if one.id == session), session)


def test_a_caller_has_the_session_that_goes_on_in_its_project(memory: Memory):
    say(memory, "old", "We moor herons here.", at=NOON - timedelta(minutes=30), project="/code/a")
    say(memory, "new", "We moor herons here.", at=NOON - timedelta(minutes=10), project="/code/a")
    say(memory, "other", "We moor herons here.", at=NOON, project="/code/b")
    assert found(memory, HERE) == "new"


def test_a_session_that_was_long_silent_is_not_the_present_one(memory: Memory):
    say(memory, "old", "We moor herons here.", at=NOON - timedelta(hours=2), project="/code/a")
    assert found(memory, HERE) == ""


def test_a_caller_in_no_project_has_no_session(memory: Memory):
    say(memory, "a", "We moor herons here.", project="/code/a")
    say(memory, "b", "We moor herons here.")
    assert found(memory, Caller()) == ""


def test_no_other_session_is_taken_for_the_one_that_a_caller_names(memory: Memory):
    say(memory, "new", "We moor herons here.", project="/code/a")
    assert found(memory, Caller(project="/code/a", session="new")) == "new"
    assert found(memory, Caller(project="/code/a", session="unheard")) == ""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel

from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory import Memory
from lore.settings import Settings
from lore.tools.catalogue import ALIASES, TOOLS, call, find_tool, served
from lore.tools.tool import Caller

CANONICAL = [
    "recall", "search", "read", "explore", "traverse", "list_roots", "timeline", "store",
    "update", "delete", "link", "supersede",
]  # fmt: skip


def test_tools_come_in_a_fixed_order():
    assert [tool.name for tool in TOOLS] == CANONICAL


def test_the_profile_and_the_aliases_decide_what_mcp_lists():
    core = [tool.name for tool in served(Settings())]
    assert core == CANONICAL[:-2]
    full = Settings(mcp_profile="full", mcp_aliases=True)
    assert [tool.name for tool in served(full)] == CANONICAL + [tool.name for tool in ALIASES]


@pytest.mark.parametrize("tool", [*TOOLS, *ALIASES], ids=lambda tool: tool.name)
def test_every_argument_is_described_and_bounded(tool):
    for name, spec in tool.arguments.model_fields.items():
        assert spec.description, name
    schema = tool.arguments.model_json_schema()
    for name, told in schema["properties"].items():
        for form in told.get("anyOf", [told]):
            if form.get("type") == "string":
                assert "maxLength" in form or "enum" in form, name
            if form.get("type") in ("integer", "number"):
                assert {"minimum", "maximum"} <= form.keys(), name
            if form.get("type") == "array":
                assert "maxItems" in form, name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_first_sentence_of_a_description_says_when_to_call_it(tool):
    assert tool.description.startswith("Call this ")
    assert len(tool.description) < 400


def test_only_what_changes_nothing_calls_itself_read_only():
    changing = [tool.name for tool in TOOLS if not tool.reads_only]
    assert changing == ["store", "update", "delete", "link", "supersede"]
    assert [t.name for t in TOOLS if t.destructive] == ["update", "delete", "supersede"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("search", {}, "search() needs 'query'."),
        ("search", {"query": "x", "limt": 3}, "search() has no argument 'limt'."),
        ("search", {"query": "x", "limit": 0}, "search(): 'limit' should be greater than or equal"),
        ("search", {"query": "x", "limit": "ten"}, "not 'ten'"),
        ("search", {"query": "x", "kind": "note"}, "search(): 'kind' should be 'fact', 'decision'"),
        ("read", {"ids": []}, "read(): 'ids' "),
        ("read", {"ids": "01a1e003-d3de"}, "read(): 'ids' should be a valid list"),
        ("store", {"content": "x", "importance": 2}, "store(): 'importance' should be less"),
        ("traverse", {"id": "ab12"}, "'ab12' is not an id: give at least 8 of its characters."),
        ("traverse", {"id": "nonsense"}, "'nonsense' is not an id: those have digits, dashes and"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_a_sentence(
    memory: Memory, name: str, given: dict[str, object], said: str
):
    with pytest.raises(InvalidInput) as refused:
        call(memory, name, given, Caller())
    assert said in str(refused.value)
    assert "pydantic" not in f"{refused.value} {refused.value.hint}"


def test_an_id_that_is_not_there_says_where_ids_come_from(memory: Memory):
    with pytest.raises(NotFound, match="No fragment starts with 'ab12cd34'") as refused:
        call(memory, "traverse", {"id": "ab12cd34"}, Caller())
    assert refused.value.hint == "search() and recall() show ids."


def test_a_tool_that_is_not_there_names_those_that_are(memory: Memory):
    with pytest.raises(NotFound, match="no tool 'remember'") as refused:
        call(memory, "remember", {}, Caller())
    assert "recall, search, read" in refused.value.hint


def test_null_counts_as_left_out(memory: Memory):
    given = {"query": "x", "parent_id": None, "depth": None, "limit": None}
    assert call(memory, "search", given, Caller()).text.startswith("Nothing found.")


def test_numbers_and_flags_may_come_as_text(memory: Memory):
    call(memory, "search", {"query": "x", "limit": "5", "deep": "true"}, Caller())


def test_whatever_fails_inside_is_an_error_of_ours_that_quotes_nothing(memory: Memory):
    secret = "hunter2"

    class Broken:
        """A memory whose questions fail in a way that nobody foresaw."""

        settings = memory.settings

        def search(self, *_given: object, **_named: object) -> None:
            raise RuntimeError(secret)

    with pytest.raises(LoreError, match="search\\(\\) failed: RuntimeError") as failed:
        call(Broken(), "search", {"query": "x"}, Caller())  # type: ignore[arg-type]
    assert secret not in str(failed.value)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_data_of_a_tool_is_of_the_form_it_announces(demo: Memory, tool):
    hits = demo.search("deploy", limit=2)
    examples: dict[str, dict[str, object]] = {
        "recall": {"query": "deploy"},
        "search": {"query": "deploy"},
        "read": {"ids": [hits[0].id]},
        "explore": {"query": "deploy"},
        "traverse": {"id": hits[0].id, "direction": "associations"},
        "list_roots": {},
        "timeline": {"anchor": "2026-10-14"},
        "store": {"content": "The tide table is printed on Mondays."},
        "update": {"id": hits[0].id, "content": "Changed."},
        "delete": {"id": hits[0].id},
        "link": {"source": hits[0].id, "target": hits[1].id},
        "supersede": {"old": hits[0].id, "new": hits[1].id},
    }
    outcome = call(demo, tool.name, examples[tool.name], Caller(origin="user"))
    assert type(outcome.data) is tool.result
    assert issubclass(tool.result, BaseModel)
    assert tool.result.model_validate_json(outcome.data.model_dump_json()) == outcome.data
    assert "{" not in outcome.text or tool.reads_only


def test_a_tool_is_found_by_name_and_by_alias_only_where_those_are_served():
    assert find_tool("search") is TOOLS[1]
    assert find_tool("query_memory") is None
    alias = find_tool("query_memory", aliases=True)
    assert alias
    assert replace(alias, name="x").result is TOOLS[1].result

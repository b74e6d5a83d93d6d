"""What a model is told of a call that cannot be done leads to one that can."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory import Memory
from lore.records import Publication
from lore.settings import Settings, load
from lore.tools import tool_registry
from lore.tools.tool import Caller
from lore.tools.tool_registry import (
    _ALIAS_SPECS,
    ALIASES,
    TOOLS,
    call_tool,
    find_tool,
    get_tool,
    list_tools,
)
from tests.fakes import NOON, FakeEmbedder
from tests.house.source import modules

CANONICAL = [
    "recall", "search", "read", "explore", "traverse", "list_roots", "timeline", "store",
    "update", "delete", "link", "supersede", "before_task", "after_task", "load", "index",
    "details", "token_economics", "handoff_write", "handoff_read", "checkpoint", "review_lessons",
    "learnings", "skills", "skill_read", "skill_write", "strategy_list", "strategy_report",
    "strategy_use", "strategy_learn", "publish",
]  # fmt: skip
FULL_ONLY = {
    "link", "supersede", "load", "index", "details", "token_economics", "handoff_write",
    "handoff_read", "checkpoint", "review_lessons", "learnings", "skills", "skill_read",
    "skill_write", "strategy_list", "strategy_report", "strategy_use", "strategy_learn",
    "publish",
}  # fmt: skip


def test_tools_come_in_a_fixed_order():
    assert [tool.name for tool in TOOLS] == CANONICAL


def test_the_profile_and_the_aliases_decide_what_mcp_lists():
    core = [tool.name for tool in list_tools(Settings())]
    assert core == [name for name in CANONICAL if name not in FULL_ONLY]
    full = Settings(mcp_profile="full", mcp_aliases=True)
    assert [tool.name for tool in list_tools(full)] == CANONICAL + [tool.name for tool in ALIASES]


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
    assert changing == [
        "store", "update", "delete", "link", "supersede", "before_task", "after_task",
        "handoff_write", "handoff_read", "checkpoint", "skill_write", "strategy_use",
        "strategy_learn", "publish",
    ]  # fmt: skip
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
        ("traverse", {"id": "nonsense"}, "'nonsense' is not an id: ids consist of digits, dashes"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_a_sentence(
    memory: Memory, name: str, given: dict[str, object], said: str
):
    with pytest.raises(InvalidInput) as refused:
        call_tool(memory, name, given, Caller())
    assert said in str(refused.value)
    assert "pydantic" not in f"{refused.value} {refused.value.hint}"


def test_an_id_that_is_not_there_says_where_ids_come_from(memory: Memory):
    with pytest.raises(NotFound, match="No fragment starts with 'ab12cd34'") as refused:
        call_tool(memory, "traverse", {"id": "ab12cd34"}, Caller())
    assert refused.value.hint == "search() and recall() show ids."


def test_a_tool_that_is_not_there_names_those_that_are(memory: Memory):
    with pytest.raises(NotFound, match="no tool 'remember'") as refused:
        call_tool(memory, "remember", {}, Caller())
    assert "recall, search, read" in refused.value.hint


def test_null_counts_as_left_out(memory: Memory):
    given = {"query": "x", "parent_id": None, "depth": None, "limit": None}
    assert call_tool(memory, "search", given, Caller()).text.startswith("Nothing found.")


def test_numbers_and_flags_may_come_as_text(memory: Memory):
    call_tool(memory, "search", {"query": "x", "limit": "5", "deep": "true"}, Caller())


def test_whatever_fails_inside_is_an_error_of_ours_that_quotes_nothing(memory: Memory):
    secret = "hunter2"

    class Broken:
        """A memory whose questions fail in a way that nobody foresaw."""

        settings = memory.settings

        def search(self, *_given: object, **_named: object) -> None:
            raise RuntimeError(secret)

    with pytest.raises(LoreError, match="search\\(\\) failed: RuntimeError") as failed:
        call_tool(Broken(), "search", {"query": "x"}, Caller())  # type: ignore[arg-type]
    assert secret not in str(failed.value)


class Desk:
    """The teams of a server, as far as the tool needs them."""

    def publish(self, id_: str, team: str) -> Publication:
        return Publication("p1", team, "ann", id_, "pending", "fact", "", "", NOON)


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
        "before_task": {"goal": "Fix the failing deploy"},
        "after_task": {"outcome": "success", "report": {"files_changed": ["deploy.sh"]}},
        "load": {"query": "deploy"},
        "index": {"query": "deploy"},
        "details": {"topic": hits[0].id},
        "token_economics": {},
        "handoff_write": {"what_was_done": "Printed the tide table.", "next_steps": ["Bind it"]},
        "handoff_read": {},
        "checkpoint": {"agent": "printer"},
        "review_lessons": {},
        "learnings": {"everywhere": True},
        "skills": {},
        "skill_read": {"skill": "Bind"},
        "skill_write": {"page": "# Skill: Bind\n\n## Steps\n\n1. Glue the back"},
        "strategy_list": {},
        "strategy_report": {},
        "strategy_use": {"profiles": ["balanced"]},
        "strategy_learn": {"on": True},
        "publish": {"id": hits[0].id, "team": "harbor"},
    }
    if tool.name == "publish":
        demo.context.team_desk = Desk()  # type: ignore[assignment]  # it only publishes
    if tool.name == "skill_read":
        call_tool(demo, "skill_write", examples["skill_write"], Caller())
    if tool.name == "handoff_read":
        call_tool(demo, "handoff_write", examples["handoff_write"], Caller())
    if tool.name == "after_task":
        demo.tasks.start("Fix the failing deploy")
    outcome = call_tool(demo, tool.name, examples[tool.name], Caller(origin="user"))
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


@pytest.fixture
def aliased(tmp_path: Path) -> Iterator[Memory]:
    """Return a memory whose tools are served under other names, too."""
    config = replace(load({}, home=tmp_path / "home").settings, mcp_aliases=True)
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


def test_the_names_are_those_that_agents_know():
    assert [alias.name for alias in _ALIAS_SPECS] == [
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
    assert call_tool(aliased, alias, given, Caller()) == call_tool(aliased, tool, meant, Caller())


def test_a_life_under_other_names(aliased: Memory):
    given = {"content": "Deploys are on Thursdays", "summary": "Deploys", "parent_id": None}
    call_tool(aliased, "store_memory", {**given, "depth": 2}, Caller())
    (top,) = aliased.search.roots()
    given = {"content": "At nine", "summary": "", "parent_id": top.id}
    call_tool(aliased, "store_memory", {**given, "depth": 3}, Caller())
    step = {"fragment_id": top.id, "direction": "children"}
    assert "At nine" in call_tool(aliased, "traverse_memory", step, Caller()).text
    call_tool(aliased, "memory_save", {"content": "Lunch is at noon"}, Caller())
    assert call_tool(aliased, "memory_delete", {"id": top.id}, Caller()).text.startswith("Deleted")


def test_a_wrong_argument_is_refused_in_the_words_of_the_alias(aliased: Memory):
    with pytest.raises(InvalidInput, match="query_memory\\(\\) needs 'topic'") as refused:
        call_tool(aliased, "query_memory", {}, Caller())
    assert refused.value.hint == "query_memory() takes topic, depth, limit."


def test_aliases_are_not_served_unless_they_are_wanted(memory: Memory):
    with pytest.raises(NotFound, match="no tool 'query_memory'"):
        call_tool(memory, "query_memory", {"topic": "x"}, Caller())


def refused(name: str, given: dict[str, object]) -> InvalidInput:
    tool = get_tool(name)
    with pytest.raises(ValidationError) as error:
        tool.arguments.model_validate(given)
    return tool_registry.describe_misfit(tool, error.value)


def test_an_argument_that_is_not_known_is_told_with_those_that_are():
    error = refused("supersede", {"old": "x", "new": "y", "reason": "z"})
    assert str(error) == "supersede() has no argument 'reason'."
    assert error.hint == "supersede() takes old, new."


def test_an_argument_that_is_missing_is_named():
    assert str(refused("delete", {})) == "delete() needs 'id'."


def test_what_does_not_fit_is_quoted_in_part_and_without_jargon():
    error = refused("search", {"query": "x", "limit": "9" * 400})
    assert str(error).startswith("search(): 'limit' should be ")
    assert str(error).count("9") == 60
    assert "Input" not in str(error)


def test_what_a_hint_says_to_call_is_a_tool():
    named = [name for module in modules() for name in called_by_hints(module.tree)]
    assert named
    assert [name for name in named if find_tool(name) is None] == []


def called_by_hints(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        given = {word.arg: word.value for word in getattr(node, "keywords", ())}
        if {"hint", "calls"} <= set(given):
            yield from ast.literal_eval(given["calls"])

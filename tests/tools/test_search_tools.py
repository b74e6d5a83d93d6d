"""The tools recall, search and read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lore.cli.demo import QUESTIONS
from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.records import TASK_TYPES, NewMessage, Part
from lore.settings import load
from lore.text import tokens
from lore.tools.search_tools import (
    ReadResult,
    RecallResult,
    SearchResult,
)
from lore.tools.tool import Caller
from lore.tools.tool_output import MAX_TOKENS
from lore.tools.tool_registry import call_tool
from tests.fakes import NOON
from tests.recall.talk import say

TEN_HITS_TOKENS = 400

NOBODY = Caller()

LONG = "Wherever possible configuration values are validated before anything else happens at all "


def search(memory: Memory, query: str, **given: object) -> tuple[str, SearchResult]:
    outcome = call_tool(memory, "search", {"query": query, **given}, Caller())
    assert isinstance(outcome.data, SearchResult)
    return outcome.text, outcome.data


def recall(
    memory: Memory, query: str, caller: Caller = NOBODY, **given: object
) -> tuple[str, RecallResult]:
    outcome = call_tool(memory, "recall", {"query": query, **given}, caller)
    assert isinstance(outcome.data, RecallResult)
    return outcome.text, outcome.data


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("query", [*QUESTIONS, "deploy", "sms"])
def test_ten_hits_of_the_demo_cost_at_most_four_hundred_tokens(
    demo: Memory, query: str, deep: bool
):
    text, data = search(demo, query, deep=deep)
    assert len(data.hits) == 10
    assert tokens.count(text) <= TEN_HITS_TOKENS


@pytest.mark.parametrize(
    "title",
    [LONG * 4, "設定値は常に検証される" * 40, "x" * 4_000, "Überprüfung größerer Änderungen " * 20],
)
def test_ten_hits_with_long_titles_below_long_titles_cost_no_more(memory: Memory, title: str):
    parents = [memory.store(f"{place} {title}", summary=title) for place in range(10)]
    for place, parent in enumerate(parents):
        memory.store(
            f"heron {place} {title}", summary=f"heron {title}", kind="anti_pattern",
            parent_id=parent, origin="web",
        )  # fmt: skip
    text, data = search(memory, "heron")
    assert len(data.hits) == 10
    assert all(hit.breadcrumb for hit in data.hits)
    assert tokens.count(text) <= TEN_HITS_TOKENS


def test_a_hit_is_one_line_that_begins_with_a_short_id(demo: Memory):
    text, data = search(demo, "deploy", limit=3)
    lines = text.split("\n")[2:-1]
    assert len(lines) == 3
    for line, hit in zip(lines, data.hits, strict=True):
        short = line.split(" ")[0]
        assert 8 <= len(short) < len(hit.id)
        assert demo.read([short], reinforce=False)[0].id == hit.id
        assert hit.kind in line
        assert str(hit.tokens) in line.split(" ")


def test_a_depth_gives_that_level_of_the_best_branches(memory: Memory):
    top = memory.store("Deploys")
    middle = memory.store("Staging comes first", parent_id=top)
    memory.store("The staging server is called heron", parent_id=middle)
    _, data = search(memory, "heron", depth=1)
    assert data.hits[0].id == middle


def test_search_without_hits_suggests_recall(memory: Memory):
    text, data = search(memory, "nothing like it")
    assert "recall()" in text
    assert data.hits == []


@pytest.mark.parametrize("budget", [60, 150, 400, 1_500])
@pytest.mark.parametrize("query", QUESTIONS)
def test_recall_text_stays_within_budget(demo_home: Path, query: str, budget: int):
    config = replace(load({}, home=demo_home).settings, recall_budget_tokens=budget)
    with Memory.open(config=config, embedder=NoEmbedder()) as memory:
        text, data = recall(memory, query)
    assert tokens.count(text) <= budget
    assert data.hits or budget < 100


def test_a_recall_uses_most_of_its_budget(demo: Memory):
    text, _ = recall(demo, QUESTIONS[1])
    assert tokens.count(text) > 0.7 * demo.settings.recall_budget_tokens


def test_recall_tool_returns_same_hits_as_library(demo: Memory):
    for query in QUESTIONS:
        _, data = recall(demo, query)
        found = [hit.id for hit in demo.recall(query).hits]
        assert len(data.hits) >= 3
        assert [hit.id for hit in data.hits] == found[: len(data.hits)]


def test_a_standing_instruction_comes_with_the_answer(memory: Memory):
    say(memory, "s", "Please always run the tests before you commit.", "Yes.")
    memory.store("Tests live in tests/ and mirror src.")
    text, data = recall(memory, "where are the tests?")
    assert [hit.text for hit in data.standing] == ["Please always run the tests before you commit."]
    assert "standing: Please always run" in text


def test_a_recall_of_the_project_looks_only_there(memory: Memory):
    say(memory, "a", "The heron server is in Oslo.", project="/code/a")
    say(memory, "b", "The heron server is in Rome.", project="/code/b")
    _, data = recall(memory, "heron server", Caller(project="/code/a"), scope="project")
    assert [hit.text for hit in data.hits] == ["The heron server is in Oslo."]


def test_a_recall_of_the_session_looks_only_there(memory: Memory):
    say(memory, "a", "The heron server is in Oslo.")
    say(memory, "b", "The heron server is in Rome.")
    _, data = recall(memory, "heron server", Caller(session="b"), scope="session")
    assert [hit.text for hit in data.hits] == ["The heron server is in Rome."]


@pytest.mark.parametrize("scope", ["session", "project"])
@pytest.mark.parametrize("caller", [Caller(), Caller(project="/code/new", session="new")])
def test_unknown_scope_error_has_a_hint(memory: Memory, scope: str, caller: Caller):
    with pytest.raises(NotFound, match=f"your {scope}") as refused:
        recall(memory, "x", caller, scope=scope)
    assert "scope='all'" in refused.value.hint


def test_a_task_type_puts_first_what_such_a_task_needs(demo: Memory):
    for task_type in TASK_TYPES:
        _, result = recall(demo, QUESTIONS[0], task_type=task_type)
        assert any(f"for {task_type}" in hit.why for hit in result.hits[:5])
    _, usual = recall(demo, QUESTIONS[0])
    assert not any(" for debugging" in hit.why for hit in usual.hits)


def test_a_task_type_that_does_not_exist_is_refused(memory: Memory):
    with pytest.raises(InvalidInput, match="task_type"):
        recall(memory, "sms", task_type="lunch")


def test_notice_is_part_of_the_answer(tmp_path: Path):
    config = load({"LORE_EMBED_MODEL": "no-such-model"}, home=tmp_path).settings
    with Memory.open(config=config) as memory:
        memory.store("Deploys are blue green")
        assert "keywords only" in recall(memory, "deploy")[0]
        assert "keywords only" in search(memory, "deploy")[0]


def test_recall_of_an_id_returns_whole_item(memory: Memory):
    said = "The staging server is called heron. " + "It stands in the harbour office. " * 60
    id_ = memory.store(said)
    short = memory.search.short_ids([id_])[id_]
    for asked in (id_, short, f"[{short}]", f"{short}, {id_}"):
        text, data = recall(memory, asked)
        assert {hit.id for hit in data.hits} == {id_}
        assert data.hits[0].text == said.strip()
        assert text.count("harbour office") >= 60
    (hit, *_) = recall(memory, f"what is {short} about: the staging server?")[1].hits
    assert hit.why != "asked for by its id"
    assert recall(memory, "01234567-89ab")[1].hits == []


def read(memory: Memory, *ids: str) -> tuple[str, ReadResult]:
    outcome = call_tool(memory, "read", {"ids": list(ids)}, Caller())
    assert isinstance(outcome.data, ReadResult)
    return outcome.text, outcome.data


def test_read_returns_fragment_with_surroundings(memory: Memory):
    [said, _] = say(memory, "s", "We deploy on Thursdays.", "Noted.")
    top = memory.store("Deploys")
    id_ = memory.store(
        "Deploys are on Thursdays.", parent_id=top, source_messages=[said], kind="decision",
        payload={"rationale": "Bastian is here", "alternatives": ["Monday", "Friday"]},
    )  # fmt: skip
    child = memory.store("They begin at nine", parent_id=id_)
    other = memory.store("Fridays are for tests")
    memory.knowledge.link(id_, other, "supports", note="so nobody waits")
    text, data = read(memory, id_)
    (item,) = data.items
    assert item.parent
    assert (item.parent.id, [one.id for one in item.children]) == (top, [child])
    assert [(edge.kind, edge.direction, edge.id) for edge in item.edges] == [
        ("supports", "out", other)
    ]
    assert item.source_messages == (said,)
    for told in (
        "> Deploys are on Thursdays.",
        "> rationale: Bastian is here",
        "> alternatives: Monday; Friday",
        "below ",
        "They begin at nine",
        "-> supports",
        "(so nobody waits)",
        "from ",
    ):
        assert told in text
    assert "{" not in text


def test_reading_strengthens_a_fragment(memory: Memory):
    id_ = memory.store("Deploys are on Thursdays.")
    read(memory, id_)
    assert memory.knowledge.log(id_)[0].access_count == 1


def test_a_message_is_read_with_its_session(memory: Memory):
    [said, _] = say(memory, "s", "We deploy on Thursdays.", "Noted.", title="Deploying")
    text, data = read(memory, said[:13])
    assert data.items[0].text == "We deploy on Thursdays."
    assert f"session {data.items[0].session_id}" in text


def test_read_marks_superseded_and_deleted(memory: Memory):
    old, new = memory.store("The port is 3207."), memory.store("The port is 4000.")
    memory.knowledge.supersede(old, new)
    assert "superseded by" in read(memory, old)[0]
    memory.knowledge.delete(new)
    assert "deleted" in read(memory, new)[0]


def test_read_stays_within_client_limit(memory: Memory):
    ids = [memory.store(f"{place} heron " * 9_000) for place in range(6)]
    text, data = read(memory, *ids)
    assert tokens.count(text) <= MAX_TOKENS
    assert "read fewer at a time" in text
    assert [item.id for item in data.items] == ids


def test_a_long_session_is_searched_first_when_it_asks(memory: Memory):
    say(memory, "a", "The heron server listens on port 1.", "Noted.")
    long = "The heron server of this session listens on port 2."
    say(memory, "long", long, *(f"line {n} " + "word " * 400 for n in range(60)))
    _, data = recall(memory, "heron server port", Caller(session="long"))
    assert data.hits[0].text == long
    assert memory.sessions.is_long("long")
    assert not memory.sessions.is_long("a")
    assert not memory.sessions.is_long("unknown")


def test_recall_answers_when_two_agents_give_their_sessions_one_name(memory: Memory):
    text = "The heron server listens on port 1."
    for agent in ("codex", "claude-code"):
        new = [NewMessage("user", (Part("text", f"{text} ({agent})"),), NOON)]
        memory.capture("shared", new, agent=agent)
    _, data = recall(memory, "heron server port", Caller(session="shared"))
    assert data.hits[0].text.startswith(text)

from __future__ import annotations

from lore.memory import Memory
from lore.text import tokens
from lore.tools.search_tools import ReadResult
from lore.tools.tool import Caller
from lore.tools.tool_output import MAX_TOKENS
from lore.tools.tool_registry import call_tool
from tests.recall.talk import say


def read(memory: Memory, *ids: str) -> tuple[str, ReadResult]:
    outcome = call_tool(memory, "read", {"ids": list(ids)}, Caller())
    assert isinstance(outcome.data, ReadResult)
    return outcome.text, outcome.data


def test_a_fragment_is_read_whole_with_what_stands_around_it(memory: Memory):
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


def test_what_no_longer_holds_says_so(memory: Memory):
    old, new = memory.store("The port is 3207."), memory.store("The port is 4000.")
    memory.knowledge.supersede(old, new)
    assert "superseded by" in read(memory, old)[0]
    memory.knowledge.delete(new)
    assert "deleted" in read(memory, new)[0]


def test_a_read_costs_no_more_than_a_client_takes(memory: Memory):
    ids = [memory.store(f"{place} heron " * 9_000) for place in range(6)]
    text, data = read(memory, *ids)
    assert tokens.count(text) <= MAX_TOKENS
    assert "read fewer at a time" in text
    assert [item.id for item in data.items] == ids

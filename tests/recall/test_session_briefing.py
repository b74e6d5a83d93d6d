"""News: what changed since a session was told of it, each change once, and nobody else's words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Origin, Part
from tests.fakes import FakeEmbedder, FixedClock

HERE = "/code/almanac"


@pytest.fixture
def memory(new_home: Path, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(new_home, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def told(memory: Memory, clock: FixedClock, session: str = "s-1") -> str:
    clock.advance(minutes=1)
    found = memory.prompts.for_prompt("Go on.", session=session, project=HERE)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    clock.advance(minutes=1)
    return found.text


def begin(memory: Memory, clock: FixedClock) -> None:
    assert memory.prompts.begin_session("s-1", project=HERE).text
    memory.database.write(lambda db: db.rows("SELECT 1"))
    clock.advance(minutes=1)


def test_no_news_without_changes(memory: Memory, clock: FixedClock):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    assert not told(memory, clock)


def test_each_change_is_news_once(memory: Memory, clock: FixedClock):
    port = memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    for value in ("6001", "6002"):
        memory.knowledge.update(port.id, content=f"The staging port is {value}")
        assert value in told(memory, clock)
        assert not told(memory, clock)
    memory.knowledge.delete(port.id)
    gone = told(memory, clock)
    assert f"[{port.id[:13]}]" in gone
    assert "staging" not in gone
    assert not told(memory, clock)


def test_change_of_an_uninjected_item_is_no_news(memory: Memory, clock: FixedClock):
    port = memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    memory.knowledge.update(port.id, content="The staging port is 6001")
    assert not told(memory, clock, session="s-2")


def test_new_instruction_is_news_to_other_sessions_of_its_project(
    memory: Memory, clock: FixedClock
):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    memory.remember("Always use tabs", kind="preference", project="/code/other")
    assert not told(memory, clock)
    memory.remember("Always use spaces", kind="preference", project=HERE)
    assert "Always use spaces" in told(memory, clock)
    assert not told(memory, clock)


def test_new_decision_is_news_once_to_sessions_of_its_project(memory: Memory, clock: FixedClock):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    memory.remember("We print on Tuesdays", kind="decision", project="/code/other")
    memory.remember("The wheel was oiled", kind="fact", project=HERE)
    assert not told(memory, clock)
    memory.remember("We print on Fridays", kind="decision", project=HERE)
    memory.remember("We bind on Mondays", kind="decision")
    found = told(memory, clock)
    assert "We print on Fridays" in found
    assert "We bind on Mondays" in found
    assert "New instructions" not in found
    assert not told(memory, clock)
    assert not told(memory, clock, session="s-2")


def test_untrusted_decision_is_no_news(memory: Memory, clock: FixedClock):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    untrusted: tuple[Origin, ...] = ("tool", "web", "repo", "peer")
    for origin in untrusted:
        text = f"We print by {origin}"
        memory.remember(text, kind="decision", project=HERE, origin=origin)
    assert not told(memory, clock)
    memory.remember("We print by hand", kind="decision", project=HERE, origin="assistant")
    assert "We print by hand" in told(memory, clock)


def test_decisions_are_limited_per_prompt_newest_first(memory: Memory, clock: FixedClock):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    for n in range(7):
        memory.remember(f"We print sheet number {n}", kind="decision", project=HERE)
        clock.advance(minutes=1)
    found = [told(memory, clock) for _ in range(4)]
    counts = [text.count("We print sheet number") for text in found]
    assert counts == [3, 3, 1, 0]
    assert "number 6" in found[0]
    assert "number 0" in found[2]


def test_own_and_injected_decisions_are_no_news(memory: Memory, clock: FixedClock):
    at = clock()
    said = [NewMessage("user", (Part("text", "We print on Fridays, that is decided."),), at)]
    memory.capture("s-1", said, project=HERE)
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    memory.remember("We print on Fridays", kind="decision", project=HERE, session="s-1")
    assert not told(memory, clock)
    gone = memory.remember("We print on Sundays", kind="decision", project=HERE)
    memory.knowledge.delete(gone.id)
    assert not told(memory, clock)


def test_superseding_decision_is_news_once(memory: Memory, clock: FixedClock):
    old = memory.remember("We print on Fridays", kind="decision", project=HERE)
    begin(memory, clock)
    new = memory.remember("We print on Mondays", kind="decision", project=HERE)
    memory.knowledge.supersede(old.id, new.id)
    found = told(memory, clock)
    assert found.count("We print on Mondays") == 1
    assert f"[{old.id[:13]}" in found
    assert not told(memory, clock)

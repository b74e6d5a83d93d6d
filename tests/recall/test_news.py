"""News: what changed since a session was told of it, each change once, and nobody else's words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from tests.fakes import FakeEmbedder, FixedClock

HERE = "/code/almanac"


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def told(memory: Memory, clock: FixedClock, session: str = "s-1") -> str:
    clock.advance(minutes=1)
    found = memory.for_prompt("Go on.", session=session, project=HERE)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    clock.advance(minutes=1)
    return found.text


def begin(memory: Memory, clock: FixedClock) -> None:
    assert memory.begin_session("s-1", project=HERE).text
    memory.database.write(lambda db: db.rows("SELECT 1"))
    clock.advance(minutes=1)


def test_where_nothing_changed_nothing_is_told(memory: Memory, clock: FixedClock):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    assert not told(memory, clock)


def test_every_change_is_told_once(memory: Memory, clock: FixedClock):
    port = memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    for value in ("6001", "6002"):
        memory.update(port.id, content=f"The staging port is {value}")
        assert value in told(memory, clock)
        assert not told(memory, clock)
    memory.delete(port.id)
    gone = told(memory, clock)
    assert f"[{port.id[:13]}]" in gone
    assert "staging" not in gone
    assert not told(memory, clock)


def test_who_was_not_told_of_something_is_not_told_of_its_change(memory: Memory, clock: FixedClock):
    port = memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    memory.update(port.id, content="The staging port is 6001")
    assert not told(memory, clock, session="s-2")


def test_an_instruction_is_news_where_it_holds_and_was_not_said(memory: Memory, clock: FixedClock):
    memory.remember("The staging port is 5436", project=HERE)
    begin(memory, clock)
    memory.remember("Always use tabs", kind="preference", project="/code/other")
    assert not told(memory, clock)
    memory.remember("Always use spaces", kind="preference", project=HERE)
    assert "Always use spaces" in told(memory, clock)
    assert not told(memory, clock)

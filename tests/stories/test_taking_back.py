"""A rule that the person takes back and replaces, from the first session to the third."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Origin, Part, Role
from tests.fakes import NOON, FakeEmbedder, FixedClock

RULE = "From now on we run the tests with make check, on the dev server."
NEW = "From now on we run the tests with just check, on the laptop."
BACK = "Forget make check. " + NEW


@pytest.fixture
def memory(new_home: Path) -> Iterator[Memory]:
    clock = FixedClock(NOON + timedelta(days=3))
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def say(memory: Memory, session: str, text: str, *, day: int, origin: Origin = "user") -> None:
    role: Role = "user" if origin == "user" else "assistant"
    at = NOON + timedelta(days=day)
    memory.capture(
        session,
        [
            NewMessage(role, (Part("text", text),), created_at=at, origin=origin),
            NewMessage("assistant", (Part("text", "Noted."),), created_at=at),
        ],
        project="/code/tides",
    )


def rules(memory: Memory) -> list[str]:
    return [hit.text for hit in memory.search.standing_instructions(project="/code/tides")]


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        (BACK, [NEW]),
        (f"Scrap make check! {NEW}", [NEW]),
        (
            "Forget make check, from now on it's just check, on the laptop.",
            ["Forget make check, from now on it's just check, on the laptop."],
        ),
    ],
)
def test_a_rule_that_was_taken_back_stands_no_longer(memory: Memory, said: str, stands: list[str]):
    say(memory, "one", RULE, day=0)
    say(memory, "two", said, day=1)
    assert rules(memory) == stands
    memory.digest(["one", "two"])
    memory.digest.consolidate()
    assert rules(memory) == stands


def test_what_was_taken_back_ranks_behind_what_holds(memory: Memory):
    say(memory, "one", RULE, day=0)
    say(memory, "two", BACK, day=1)
    texts = {hit.text: hit for hit in memory.recall("how do we run the tests?")}
    assert list(texts).index(BACK) < list(texts).index(RULE)
    assert "out of date" in texts[RULE].why


@pytest.mark.parametrize("origin", ["assistant", "tool", "web"])
def test_nobody_but_the_person_takes_a_rule_back(memory: Memory, origin: Origin):
    say(memory, "one", RULE, day=0)
    say(memory, "two", BACK, day=1, origin=origin)
    memory.digest(["one", "two"])
    assert RULE in rules(memory)


def test_of_two_rules_on_one_matter_the_newer_comes_first_with_its_day(memory: Memory):
    say(memory, "one", RULE, day=0)
    say(memory, "two", NEW, day=1)
    assert rules(memory) == [NEW, RULE]
    told = memory.prompts.begin_session("three", project="/code/tides").text
    assert told.index(f"{NOON + timedelta(days=1):%Y-%m-%d} > {NEW}") < told.index(RULE)

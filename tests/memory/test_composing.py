"""Prompts of a session: what it is told once, when its cache is cold, what all of it would cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Dialogue, Entry, Speaker, TokenUse
from lore.settings import load
from tests.fakes import FakeEmbedder, FixedClock
from tests.memory.test_conversing import talk

TALK = Speaker("s-1", "claude-code", "/code/almanac")
USED = TokenUse(cache_write_tokens=400, output_tokens=9)


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def said(entries: list[Entry]) -> Dialogue:
    return Dialogue("claude-sonnet-4-5", tuple(entries), fixed_chars=100)


def test_knowledge_is_chosen_when_a_session_begins_and_never_again(memory: Memory):
    composer = Composer(memory)
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    first = composer.compose(TALK, said(talk(1)[:1]))
    memory.remember("Deploys go through ops/other.sh now", kind="decision", project=TALK.project)
    assert "ops/deploy.sh" in first.knowledge
    assert composer.compose(TALK, said(talk(2)[:5])).knowledge == first.knowledge


def test_a_talk_that_has_gone_on_without_memory_is_not_told_any(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    assert not Composer(memory).compose(TALK, said(talk(250))).knowledge


def test_a_session_that_was_told_nothing_is_told_nothing_after_a_restart(memory: Memory):
    assert not Composer(memory).compose(TALK, said(talk(1)[:1])).knowledge
    memory.database.write(lambda db: db.rows("SELECT 1"))
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    assert not Composer(memory).compose(TALK, said(talk(2)[:5])).knowledge


def test_a_session_whose_cache_is_cold_is_told_what_stands_by_now(
    memory: Memory, clock: FixedClock
):
    composer, dialogue = Composer(memory), said(talk(1)[:1])
    composer.settle(TALK, dialogue, composer.compose(TALK, dialogue), USED)
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    assert not composer.compose(TALK, dialogue).knowledge
    clock.advance(seconds=301)
    assert "ops/deploy.sh" in composer.compose(TALK, dialogue).knowledge


def test_a_helper_is_told_nothing_of_its_own_accord(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    helper = Speaker("s-1/agent-2", "claude-code", TALK.project, "s-1")
    assert not Composer(memory).compose(helper, said(talk(1)[:1])).knowledge


def test_a_cache_is_cold_once_its_time_is_over(memory: Memory, clock: FixedClock):
    composer = Composer(memory)
    dialogue = said(talk(1)[:1])
    composed = composer.compose(TALK, dialogue)
    assert composer.cache_left_s(TALK) is None
    composer.settle(TALK, dialogue, composed, USED)
    clock.advance(seconds=100)
    assert composer.cache_left_s(TALK) == 200.0
    assert not composer.compose(TALK, dialogue).cold
    clock.advance(seconds=201)
    assert composer.cache_left_s(TALK) is None
    assert composer.compose(TALK, dialogue).cold


def test_a_prompt_that_was_refused_raises_the_floor_also_after_a_restart(memory: Memory):
    Composer(memory).raise_floor(TALK, 210_345, 200_000)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    again = Composer(memory)
    again.compose(TALK, said(talk(8)))
    assert "Layer" in again.describe(TALK, said(talk(8)))
    assert again.desk.held(TALK).pins.floor == 2


def test_what_the_whole_would_have_cost_is_no_less_than_what_was_sent(memory: Memory):
    composer = Composer(memory)
    dialogue = said(talk(4))
    composed = composer.compose(TALK, dialogue)
    without = composer.settle(TALK, dialogue, composed, USED)
    assert without.input_tokens >= USED.input_tokens


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_what_is_forgotten_is_not_said_again(memory: Memory, elsewhere: bool):
    composer = Composer(memory)
    kept = memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    entries = talk(2)
    first = composer.compose(TALK, said(entries[:1]))
    composer.add_note(TALK, entries[0], "The staging port is 5436.")
    assert "5436" in first.knowledge
    if elsewhere:
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
            other.forget(id=kept.id)
    else:
        memory.forget(id=kept.id)
    again = composer.compose(TALK, said(entries[:5]))
    assert "5436" not in again.knowledge
    assert not again.notes
    composer.settle(TALK, said(entries[:5]), again, USED)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    held = composer.desk.held(TALK)
    assert "5436" not in f"{held.knowledge} {held.notes}"


def test_a_store_that_takes_nothing_costs_no_session_its_prompt(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    memory.database.full = True
    assert "ops/deploy.sh" in Composer(memory).compose(TALK, said(talk(1)[:1])).knowledge


def test_notes_on_what_is_left_out_are_let_go_of(tmp_path: Path, clock: FixedClock):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = Composer(memory), talk(60)
        composer.compose(TALK, said(entries[:1]))
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        composer.add_note(TALK, entries[0], "An old note.")
        composer.add_note(TALK, entries[-4], "A new note.")
        composed = composer.compose(TALK, said(entries))
    assert composed.plan.busts
    assert composed.plan.start
    assert list(composed.notes) == [entries[-4].key]

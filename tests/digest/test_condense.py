from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lore.digest import distillation
from lore.digest.distillation import LogLimits, distill_session
from lore.embed.embedder import NoEmbedder
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Distillation, NewMessage, Part
from lore.store import distillations, sessions
from lore.text import tokens
from tests.digest.conversations import capture_messages
from tests.fakes import NOON

SMALL = LogLimits(segment_tokens=150, share=0.5, min_tokens=64)


def stored_distillations(memory: Memory) -> list[Distillation]:
    with memory.database.read() as db:
        return distillations.distillations_of_session(db, sessions.get_session_number(db, "talk"))


def grow(memory: Memory, count: int, start: int = 0) -> None:
    capture_messages(memory, count, start=start)
    distill_session(memory.database, OfflineSummarizer(), "talk", limits=SMALL)


def condense(memory: Memory, threshold: int = 20) -> str:
    return distillation.condense_session(
        memory.database, OfflineSummarizer(), "talk", threshold=threshold
    )


def test_few_distillations_stay_as_they_are(memory: Memory):
    grow(memory, 60)
    assert len(stored_distillations(memory)) < 20
    assert condense(memory) == ""
    assert not any(one.archived for one in stored_distillations(memory))


def test_all_but_the_newest_five_become_one_and_are_archived(memory: Memory):
    grow(memory, 200)
    before = stored_distillations(memory)
    made = condense(memory)
    zero = [one for one in stored_distillations(memory) if one.generation == 0]
    (meta,) = [one for one in stored_distillations(memory) if one.generation == 1]
    assert meta.id == made
    assert [one.id for one in zero] == [one.id for one in before]
    assert [one.archived for one in zero] == [True] * (len(zero) - 5) + [False] * 5
    assert (meta.from_message, meta.to_message) == (before[0].from_message, before[-6].to_message)
    assert (
        meta.tokens
        == tokens.count(meta.text)
        <= LogLimits().for_source(sum(one.tokens for one in before[:-5]))
    )


def test_the_lines_of_a_condensed_log_know_their_messages(memory: Memory):
    grow(memory, 200)
    condense(memory)
    (meta,) = [one for one in stored_distillations(memory) if one.generation == 1]
    lines = meta.text.split("\n")
    assert len(lines) == len(meta.sources)
    assert {line for line, told in zip(lines, meta.sources, strict=True) if not told} <= {
        "Current state:", "Decisions:", "Changes:", "Timeline:"
    }  # fmt: skip
    for line, ordinals in zip(lines, meta.sources, strict=True):
        assert all(f" {o}" in line or f"-{o}." in line for o in ordinals[:1])


def test_the_former_one_is_fed_back_in_and_archived(memory: Memory):
    grow(memory, 200)
    first = condense(memory)
    assert condense(memory) == ""
    grow(memory, 200, start=200)
    second = condense(memory)
    metas = {one.id: one for one in stored_distillations(memory) if one.generation == 1}
    assert metas[first].archived
    assert not metas[second].archived
    assert metas[second].from_message == metas[first].from_message
    assert min(o for line in metas[second].sources for o in line) < 200


def test_the_archived_stand_for_themselves_again_where_their_successor_is_gone(memory: Memory):
    ids = capture_messages(memory, 200)
    grow(memory, 0)
    condense(memory)
    memory.forget(id=ids[0])
    assert condense(memory, threshold=1_000) == ""
    assert not any(one.archived for one in stored_distillations(memory))


def test_archived_logs_are_still_found(memory: Memory):
    grow(memory, 200)
    condense(memory)
    memory.maintenance.embed_waiting()
    archived = next(one for one in stored_distillations(memory) if one.archived)
    line = archived.text.split("\n")[1]
    answer = memory.recall(line, types=("distillation",), limit=5)
    assert any(line in hit.text for hit in answer.hits)


def test_a_condensed_log_covers_its_messages_whatever_their_clocks_say(tmp_path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        said = [
            NewMessage(
                "assistant" if place % 2 else "user",
                (
                    Part(
                        "text", f"Step {place}: the port of service {place} is {4000 + place}. " * 9
                    ),
                ),
                NOON - timedelta(minutes=10 * place),
            )
            for place in range(200)
        ]
        memory.capture("s", said)
        memory.context.settings = replace(memory.settings, distill_meta_threshold=8)
        memory.distill("s")
        with memory.database.read() as db:
            found = distillations.message_ranges(db, sessions.get_session_number(db, "s"))
        assert all(first <= last for first, _, last, _ in found.values())
        assert min(first for first, *_ in found.values()) == 0

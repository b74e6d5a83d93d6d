"""TODO."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.digest import distillation
from lore.digest.distillation import LogLimits, distill_session
from lore.embed.embedder import NoEmbedder
from lore.errors import LoreError
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Distillation, LogLine, NewMessage, Part, Segment
from lore.store import distillations, messages, sessions
from lore.text import tokens
from tests.digest.conversations import (
    FailingSummarizer,
    VerboseSummarizer,
    capture_messages,
    message_text,
    numbered_sentence,
)
from tests.fakes import NOON, FixedClock

SMALL = LogLimits(segment_tokens=300)


def stored_distillations(memory: Memory, session: str = "talk") -> list[Distillation]:
    with memory.database.read() as db:
        return distillations.distillations_of_session(db, sessions.get_session_number(db, session))


def covered(memory: Memory, session: str = "talk") -> list[int]:
    """Return the ordinals that distillations of generation 0 cover, as often as they do."""
    with memory.database.read() as db:
        spans = distillations.covered_spans(db, sessions.get_session_number(db, session))
        found = messages.messages_of_session(db, sessions.get_session_number(db, session))
    there = {message.ordinal for message in found}
    return [o for span in spans for o in range(span.first, span.last + 1) if o in there]


def distill(memory: Memory, session: str = "talk") -> list[str]:
    return distillation.distill_session(memory.database, OfflineSummarizer(), session, limits=SMALL)


def test_every_message_is_covered_once_and_a_second_run_makes_nothing(memory: Memory):
    capture_messages(memory, 60)
    made = distill(memory)
    assert len(made) > 3
    assert covered(memory) == list(range(60))
    assert distill(memory) == []
    assert [one.id for one in stored_distillations(memory)] == made


def test_log_lines_have_their_source_messages(memory: Memory):
    capture_messages(memory, 40)
    distill(memory)
    logs = stored_distillations(memory)
    assert any(ordinals for one in logs for ordinals in one.sources)
    for one in logs:
        lines = one.text.split("\n")
        assert len(lines) == len(one.sources)
        for line, ordinals in zip(lines, one.sources, strict=True):
            for ordinal in ordinals:
                statements = line.partition(": ")[2].split("; ")
                assert all(text.rstrip("…") in numbered_sentence(ordinal) for text in statements)


def test_log_has_the_date_of_its_messages(memory: Memory, clock: FixedClock):
    capture_messages(memory, 10)
    clock.advance(days=90)
    distill(memory)
    (one,) = stored_distillations(memory)
    assert one.text.startswith("2026-05-13\n")
    assert one.created_at.date() == NOON.date()


def test_a_short_conversation_waits_until_there_is_more(memory: Memory):
    capture_messages(memory, 4)
    assert distill(memory) == []
    capture_messages(memory, 3, start=4)
    assert len(distill(memory)) == 1
    assert covered(memory) == list(range(7))


def test_new_messages_get_their_own_distillation(memory: Memory):
    capture_messages(memory, 20)
    before = distill(memory)
    capture_messages(memory, 3, start=20)
    assert distill(memory) == []
    capture_messages(memory, 7, start=23)
    after = distill(memory)
    assert [one.id for one in stored_distillations(memory)] == before + after
    assert covered(memory) == list(range(30))


def test_failed_run_continues_after_the_last_stored_segment(memory: Memory):
    capture_messages(memory, 60)
    stopping = FailingSummarizer(after=2)
    with pytest.raises(LoreError, match="network"):
        distillation.distill_session(memory.database, stopping, "talk", limits=SMALL)
    assert len(stored_distillations(memory)) == 2
    first = [one.id for one in stored_distillations(memory)]
    again = FailingSummarizer(after=1_000)
    distillation.distill_session(memory.database, again, "talk", limits=SMALL)
    assert again.asked == len(stored_distillations(memory)) - 2
    assert [one.id for one in stored_distillations(memory)][:2] == first
    assert covered(memory) == list(range(60))


def test_two_at_once_store_each_segment_once(memory: Memory):
    capture_messages(memory, 60)
    threads = [threading.Thread(target=distill, args=(memory,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert covered(memory) == list(range(60))


_PROCESS = """
import sys
from lore.digest import distillation
from lore.embed.embedder import NoEmbedder
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
limits = distillation.LogLimits(segment_tokens=300)
with Memory.open(home=sys.argv[1], embedder=NoEmbedder()) as memory:
    print("open", flush=True)
    sys.stdin.readline()
    distillation.distill_session(memory.database, OfflineSummarizer(), "talk", limits=limits)
"""


def _start(home: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, str(home)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_two_processes_cover_each_message_once_though_one_is_killed(memory: Memory, tmp_path: Path):
    capture_messages(memory, 200)
    processes = [_start(tmp_path / "home") for _ in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    processes[0].kill()
    for process in processes:
        process.communicate()
    distill(memory)
    assert covered(memory) == list(range(200))


def test_forgetting_a_message_removes_its_distillation_and_the_rest_is_distilled_again(
    memory: Memory,
):
    ids = capture_messages(memory, 40)
    distill(memory)
    count = len(stored_distillations(memory))
    memory.forget(id=ids[12])
    assert len(stored_distillations(memory)) == count - 1
    assert 12 not in covered(memory)
    distill(memory)
    assert covered(memory) == [o for o in range(40) if o != 12]
    assert all("reef 12 " not in one.text for one in stored_distillations(memory))


def test_a_message_that_is_forgotten_while_it_is_read_is_not_distilled(memory: Memory):
    ids = capture_messages(memory, 10)

    class Slow(OfflineSummarizer):
        def observe(self, segment, *, limit_tokens):
            memory.forget(id=ids[3])
            return super().observe(segment, limit_tokens=limit_tokens)

    assert distillation.distill_session(memory.database, Slow(), "talk") == []
    assert stored_distillations(memory) == []
    assert len(distill(memory)) == 1


def test_a_result_longer_than_its_source_is_dropped_in_favour_of_the_source(memory: Memory):
    capture_messages(memory, 6)
    distillation.distill_session(memory.database, VerboseSummarizer(), "talk")  # type: ignore[arg-type]
    (one,) = stored_distillations(memory)
    assert one.text.split("\n")[3] == f"assistant: {numbered_sentence(3)}"
    assert one.sources == tuple((i,) for i in range(6))


def test_the_log_of_a_session_with_only_code_has_the_beginning_of_each_message(memory: Memory):
    code = "```python\n" + "x = 1\n" * 200 + "```"
    new = [NewMessage("user", (Part("text", code),), NOON, key=str(i)) for i in range(6)]
    memory.capture("code", new)
    distillation.distill_session(memory.database, OfflineSummarizer(), "code")
    (one,) = stored_distillations(memory, "code")
    assert (
        one.tokens <= distillation.limits_for(OfflineSummarizer()).for_source(one.source_tokens) + 6
    )


def test_log_of_tool_results_is_not_put_into_prompts(memory: Memory):
    capture_messages(memory, 8)
    result = Part("tool_result", "The lamp is sold to whoever asks for it " * 5)
    new = [NewMessage("tool", (result,), NOON, key=str(i)) for i in range(3)]
    memory.capture("mixed", [*new, *(NewMessage("user", (Part("text", numbered_sentence(i)),), NOON)
                                     for i in range(9))])  # fmt: skip
    distill(memory)
    distill(memory, "mixed")
    with memory.database.read() as db:
        ns = {one.id: n for n, one in _numbered(memory).items()}
        trusted = messages.trusted_items(db, list(ns.values()))
    assert {ns[one.id] for one in stored_distillations(memory)} <= trusted
    assert ns[stored_distillations(memory, "mixed")[0].id] not in trusted


def _numbered(memory: Memory) -> dict[int, Distillation]:
    with memory.database.read() as db:
        return distillations.get_distillations(db, list(range(1, 100)))


def test_idle_sessions_with_new_messages_are_due_until_distilled(memory: Memory, clock: FixedClock):
    capture_messages(memory, 20)
    capture_messages(memory, 4, session="short")
    clock.moment = NOON
    assert distillation.due_sessions(memory.database) == []
    clock.advance(minutes=10)
    assert len(distillation.due_sessions(memory.database)) == 2
    assert len(distillation.due_sessions(memory.database, limit=1)) == 1
    for session in distillation.due_sessions(memory.database):
        distill(memory, session)
    assert distillation.due_sessions(memory.database) == []
    capture_messages(memory, 2, session="short", start=4)
    clock.advance(minutes=10)
    assert len(distillation.due_sessions(memory.database)) == 1


def test_a_session_whose_distillation_is_gone_is_due_again(memory: Memory, clock: FixedClock):
    ids = capture_messages(memory, 40)
    clock.advance(hours=1)
    distill(memory)
    memory.forget(id=ids[12])
    assert len(distillation.due_sessions(memory.database)) == 1


@given(st.integers(0, 2_000_000))
def test_a_log_has_ten_times_the_root_of_its_source_within_bounds(source: int):
    limit = LogLimits().for_source(source)
    assert limit == min(4_096, max(256, min(source, round(10 * source**0.5))))
    assert 256 <= distillation.limits_for(OfflineSummarizer()).for_source(source) <= limit


def test_the_same_conversation_gives_the_same_logs(memory: Memory):
    capture_messages(memory, 40)
    capture_messages(memory, 40, session="again")
    distill(memory)
    distill(memory, "again")
    logs = [one.text for one in stored_distillations(memory)]
    assert len(logs) > 2
    assert logs == [one.text for one in stored_distillations(memory, "again")]


def test_a_log_is_much_shorter_than_a_long_conversation(memory: Memory):
    capture_messages(memory, 400)
    distillation.distill_session(memory.database, OfflineSummarizer(), "talk")
    made = stored_distillations(memory)
    assert all(any(one.sources) for one in made)
    assert 0 < sum(one.tokens for one in made) <= 0.2 * sum(one.source_tokens for one in made)
    assert all(one.tokens == tokens.count(one.text) for one in made)


SEGMENT = Segment(
    "s",
    (
        message_text(4, "The berth in Bergen costs 40 crowns"),
        message_text(5, "The lamp of the lighthouse has a new fuse"),
        message_text(6, "It was 2026-05-13"),
    ),
)


def sources(*lines: LogLine) -> list[tuple[int, ...]]:
    return [line.sources for line in distillation.verify_sources(lines, SEGMENT)]


def test_sources_outside_the_segment_are_dropped():
    assert sources(LogLine("They spoke of okapis for long", (4, 99))) == [(4,)]


def test_a_line_without_sources_is_traced_by_its_words():
    told = LogLine("Mara learned that the Bergen berth costs 40 crowns now")
    assert sources(told, LogLine("okapis zebras giraffes")) == [(4,), ()]


def test_a_heading_has_no_sources():
    assert sources(LogLine("2026-05-13"), LogLine("Decisions:")) == [(), ()]


def test_a_line_with_false_sources_is_traced_too():
    assert sources(LogLine("The lamp has a new fuse", (77,))) == [(5,)]


TINY = LogLimits(segment_tokens=150)


def grow(memory: Memory, count: int, start: int = 0) -> None:
    capture_messages(memory, count, start=start)
    distill_session(memory.database, OfflineSummarizer(), "talk", limits=TINY)


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


def test_former_condensed_log_is_condensed_again_and_archived(memory: Memory):
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


def test_archived_logs_are_restored_if_their_successor_is_gone(memory: Memory):
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

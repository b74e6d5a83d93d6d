from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.digest import distillation
from lore.digest.distillation import LogLimits
from lore.errors import LoreError
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Distillation, NewMessage, Part
from lore.store import distillations, messages, sessions
from lore.text import tokens
from tests.digest.conversations import (
    FailingSummarizer,
    VerboseSummarizer,
    capture_messages,
    numbered_sentence,
)
from tests.fakes import NOON, FixedClock

SMALL = LogLimits(segment_tokens=300, share=0.5, min_tokens=64)


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


def test_the_lines_of_a_log_know_the_messages_that_they_quote(memory: Memory):
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


def test_a_log_is_dated_by_what_was_said_and_not_by_the_day_of_the_digest(
    memory: Memory, clock: FixedClock
):
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


def test_what_was_said_since_is_distilled_by_itself(memory: Memory):
    capture_messages(memory, 20)
    before = distill(memory)
    capture_messages(memory, 3, start=20)
    assert distill(memory) == []
    capture_messages(memory, 7, start=23)
    after = distill(memory)
    assert [one.id for one in stored_distillations(memory)] == before + after
    assert covered(memory) == list(range(30))


def test_a_failure_loses_nothing_and_the_next_run_goes_on_behind_it(memory: Memory):
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
limits = distillation.LogLimits(segment_tokens=300, share=0.5, min_tokens=64)
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


def test_a_log_of_what_a_tool_gave_back_is_not_put_into_a_prompt_unasked(memory: Memory):
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


def test_quiet_sessions_with_something_new_are_due_and_then_are_not(
    memory: Memory, clock: FixedClock
):
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
    assert limit == min(4_096, max(256, round(10 * source**0.5)))
    assert SMALL.for_source(source) <= limit


def test_the_same_conversation_gives_the_same_logs(memory: Memory):
    capture_messages(memory, 40)
    capture_messages(memory, 40, session="again")
    distill(memory)
    distill(memory, "again")
    logs = [one.text for one in stored_distillations(memory)]
    assert len(logs) > 2
    assert logs == [one.text for one in stored_distillations(memory, "again")]


def test_a_log_is_shorter_than_a_tenth_of_a_long_conversation(memory: Memory):
    capture_messages(memory, 400)
    distillation.distill_session(memory.database, OfflineSummarizer(), "talk")
    made = stored_distillations(memory)
    assert all(any(one.sources) for one in made)
    assert 0 < sum(one.tokens for one in made) <= 0.1 * sum(one.source_tokens for one in made)
    assert all(one.tokens == tokens.count(one.text) for one in made)

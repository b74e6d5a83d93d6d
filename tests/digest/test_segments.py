from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.digest import segments
from lore.records import MessageText
from tests.digest.conversations import message_text

sizes = st.lists(st.integers(0, 3_000), min_size=0, max_size=80)


def run(counts: list[int]) -> list[MessageText]:
    return [replace(message_text(i), tokens=count) for i, count in enumerate(counts)]


@given(sizes, st.integers(64, 20_000))
def test_each_message_is_in_one_segment_in_order_and_no_segment_is_too_long(
    counts: list[int], about: int
):
    talk = run(counts)
    found = segments.split_segments("s", talk, about_tokens=about)
    assert [one for segment in found for one in segment.messages] == talk
    assert all(segment.tokens <= segments.MAX_TOKENS for segment in found)
    assert all(segment.messages for segment in found)


@given(sizes)
def test_a_segment_has_five_messages_unless_that_would_be_too_long(counts: list[int]):
    found = segments.split_segments("s", run(counts), about_tokens=1_600)
    for segment in found[:-1]:
        assert len(segment.messages) >= segments.MIN_MESSAGES or segment.tokens > 12_000


@given(sizes, sizes)
def test_later_messages_change_only_the_last_segments(counts: list[int], more: list[int]):
    before = segments.split_segments("s", run(counts), about_tokens=1_600)
    after = segments.split_segments("s", run(counts + more), about_tokens=1_600)
    assert before[:-2] == after[: max(0, len(before) - 2)]


def test_a_run_is_cut_at_its_longest_pause():
    talk = [replace(message_text(i), tokens=100) for i in range(24)]
    late = [replace(one, at=one.at + timedelta(hours=3)) for one in talk[9:]]
    found = segments.split_segments("s", [*talk[:9], *late], about_tokens=1_200)
    assert len(found[0].messages) == 9


def test_a_run_is_cut_where_the_words_change():
    talk = [
        message_text(i, "The lamp of the lighthouse has a new fuse now", voice="a")
        for i in range(7)
    ]
    talk += [
        message_text(i, "Ropes of nylon hold better in cold water", voice="a") for i in range(7, 20)
    ]
    talk = [replace(one, origin="assistant", tokens=100) for one in talk]
    assert len(segments.split_segments("s", talk, about_tokens=1_000)[0].messages) == 7


def test_topics_are_compared_by_vectors_if_there_are_any():
    talk = [
        replace(message_text(i, "same words"), origin="assistant", tokens=100) for i in range(20)
    ]
    vectors = {
        one.id: np.array([1.0, 0.0] if i < 8 else [0.0, 1.0], np.float32)
        for i, one in enumerate(talk)
    }
    found = segments.split_segments("s", talk, about_tokens=1_000, vectors=vectors)
    assert len(found[0].messages) == 8


def test_a_short_conversation_is_not_enough():
    assert not segments.is_large_enough([replace(message_text(i), tokens=100) for i in range(4)])
    assert not segments.is_large_enough([replace(message_text(i), tokens=10) for i in range(6)])
    assert segments.is_large_enough([replace(message_text(i), tokens=13) for i in range(5)])

"""Splitting sessions into exchanges and events."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.digest.segments import (
    MAX_EXCHANGE_TOKENS,
    MAX_TALK_MESSAGES,
    MAX_UNSPLIT_TURNS,
    MIN_EVENT_TURNS,
    split_events,
    split_exchanges,
)
from lore.records import MessageText
from tests.fakes import FakeEmbedder

AT = datetime(2026, 5, 13, tzinfo=UTC)


def message_text(voice: str, tokens: int = 5) -> MessageText:
    return MessageText("m", 0, AT, voice, "x", "user", tokens)


def test_an_exchange_begins_where_the_person_speaks():
    cut = split_exchanges(
        "s", [message_text(v) for v in ("user", "assistant", "tool", "user", "assistant")]
    )
    assert [[one.voice for one in each.messages] for each in cut] == [
        ["user", "assistant", "tool"],
        ["user", "assistant"],
    ]


def test_conversations_between_people_are_split_into_short_runs():
    cut = split_exchanges("s", [message_text("Ana") for _ in range(2 * MAX_TALK_MESSAGES)])
    assert [len(each.messages) for each in cut] == [MAX_TALK_MESSAGES, MAX_TALK_MESSAGES]


def test_a_long_exchange_is_read_in_pieces():
    cut = split_exchanges(
        "s",
        [
            message_text("user"),
            message_text("assistant", MAX_EXCHANGE_TOKENS),
            message_text("tool", 9),
        ],
    )
    assert [len(each.messages) for each in cut] == [1, 1, 1]


GARDEN = [f"roses tulips garden soil water plant a{n % 3}" for n in range(10)]
BOAT = [f"boat harbour sail anchor wind captain b{n % 3}" for n in range(10)]


def test_a_session_is_split_where_it_turns_to_something_else():
    embed = FakeEmbedder(dimension=256).embed
    assert split_events(GARDEN + BOAT, embed) == [range(10), range(10, 20)]
    assert split_events(GARDEN + BOAT) == [range(10), range(10, 20)]


def test_twelve_turns_are_one_event():
    turns = GARDEN[:6] + BOAT[:6]
    assert split_events(turns, FakeEmbedder().embed) == [range(MAX_UNSPLIT_TURNS)]
    assert split_events(turns) == [range(MAX_UNSPLIT_TURNS)]


def test_session_on_one_topic_is_one_event():
    assert split_events(GARDEN * 3) == [range(30)]
    assert split_events(GARDEN[:1] * 30, FakeEmbedder().embed) == [range(30)]


def test_a_session_without_turns_has_no_events():
    assert split_events([]) == []


words = st.sampled_from(["boat", "garden", "tax", "song", "tree", "road", ""])
turns = st.lists(st.lists(words, max_size=4).map(" ".join), max_size=60)


@given(turns, st.booleans())
def test_events_follow_each_other_without_gaps_and_are_never_short(said, has_embedder):
    found = split_events(said, FakeEmbedder().embed if has_embedder else None)
    assert [n for event in found for n in event] == list(range(len(said)))
    if len(found) > 1:
        assert len(said) > MAX_UNSPLIT_TURNS
        assert min(map(len, found)) >= MIN_EVENT_TURNS


def test_zero_vectors_do_not_split_events():
    assert split_events(["x"] * 20, lambda texts: np.zeros((len(texts), 8), np.float32)) == [
        range(20)
    ]

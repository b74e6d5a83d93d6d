from __future__ import annotations

from datetime import UTC, datetime

from lore.curate.exchanges import MOST_TOKENS, RUN_OF_TALK, exchanges
from lore.records import Said

AT = datetime(2026, 5, 13, tzinfo=UTC)


def said(voice: str, tokens: int = 5) -> Said:
    return Said("m", 0, AT, voice, "x", "user", tokens)


def test_an_exchange_begins_where_the_person_speaks():
    cut = exchanges("s", [said(v) for v in ("user", "assistant", "tool", "user", "assistant")])
    assert [[one.voice for one in each.said] for each in cut] == [
        ["user", "assistant", "tool"],
        ["user", "assistant"],
    ]


def test_talk_between_people_is_cut_into_short_runs():
    cut = exchanges("s", [said("Ana") for _ in range(2 * RUN_OF_TALK)])
    assert [len(each.said) for each in cut] == [RUN_OF_TALK, RUN_OF_TALK]


def test_a_long_exchange_is_read_in_pieces():
    cut = exchanges("s", [said("user"), said("assistant", MOST_TOKENS), said("tool", 9)])
    assert [len(each.said) for each in cut] == [1, 1, 1]

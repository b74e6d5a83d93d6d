from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline.digester import OfflineDigester
from lore.llm.offline.observing import observe
from lore.records import Segment
from lore.text import tokens
from tests.distill.talk import said, told
from tests.fakes import NOON

talk = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool", "Mara"]), st.text(max_size=400)),
    max_size=12,
)


@given(talk, st.integers(0, 400))
def test_a_log_keeps_its_limit_and_its_lines_are_in_the_order_of_the_talk(
    spoken: list[tuple[str, str]], limit: int
):
    segment = Segment("s", tuple(said(i, text, voice=v) for i, (v, text) in enumerate(spoken)))
    log = observe(segment, limit_tokens=limit)
    assert not log.lines or tokens.count(log.text) <= limit
    ordinals = [line.sources[0] for line in log.lines if line.sources]
    assert ordinals == sorted(set(ordinals))
    assert observe(segment, limit_tokens=limit) == log


@given(st.lists(st.integers(0, 31), min_size=1, max_size=12, unique=True), st.integers(60, 400))
def test_of_talk_that_says_something_some_is_told_word_for_word(told_of: list[int], limit: int):
    segment = Segment("s", tuple(said(place, told(i)) for place, i in enumerate(told_of)))
    log = observe(segment, limit_tokens=limit)
    quoted = [line for line in log.lines if line.sources]
    assert quoted
    assert tokens.count(log.text) <= limit
    for line in quoted:
        source = segment.said[line.sources[0]].text
        clauses = line.text.partition(": ")[2].split("; ")
        assert all(clause.rstrip("…") in source for clause in clauses)


def test_a_line_says_who_spoke_and_quotes_what_matters_word_for_word():
    segment = Segment(
        "s",
        (
            said(0, "Hi there! The berth in Bergen costs 40 crowns a night.", voice="Mara"),
            said(1, "Great, thanks!", voice="Ole"),
            said(2, "From now on we pay in advance with card 'harbor-7'.", voice="Ole"),
        ),
    )
    log = observe(segment, limit_tokens=80)
    assert [(line.text, line.sources) for line in log.lines] == [
        ("2026-05-13", ()),
        ("Mara: The berth in Bergen costs 40 crowns a night", (0,)),
        ("Ole: From now on we pay in advance with card 'harbor-7'", (2,)),
    ]


def test_each_day_stands_before_what_was_said_on_it():
    late = NOON + timedelta(days=2)
    segment = Segment("s", (said(0), said(1, at=late)))
    texts = [line.text for line in observe(segment, limit_tokens=200).lines]
    assert [text for text in texts if text[:4] == "2026"] == ["2026-05-13", "2026-05-15"]


def test_where_room_is_short_what_a_person_decided_goes_before_small_talk():
    chat = [said(i, f"That sounds like quite a lovely plan number {i}") for i in range(8)]
    chat.insert(4, said(9, "We decided to switch berth 12 to nylon ropes, never hemp again"))
    log = OfflineDigester().observe(Segment("s", tuple(chat)), limit_tokens=45)
    assert "switch berth 12 to nylon ropes" in log.text


def test_the_same_words_are_not_told_twice():
    chat = [said(i, "The lamp of the lighthouse is broken since Monday") for i in range(6)]
    log = observe(Segment("s", tuple(chat)), limit_tokens=200)
    assert len(log.lines) == 2

from __future__ import annotations

from datetime import UTC, datetime

from lore.curate.exchanges import MOST_TOKENS, RUN_OF_TALK, exchanges, saids
from lore.records import Message, Part, Said

AT = datetime(2026, 5, 13, tzinfo=UTC)


def message(*parts: Part, role="assistant", origin="assistant") -> Message:
    return Message("m", "s", 0, role, parts, 1, AT, origin)


def said(voice: str, tokens: int = 5) -> Said:
    return Said("m", 0, AT, voice, "x", "user", tokens)


def test_asides_and_reasoning_are_not_read():
    parts = (Part("aside", "boot"), Part("reasoning", "hm"), Part("text", "Hello"))
    assert [one.text for one in saids([message(*parts)])] == ["Hello"]


def test_a_message_of_asides_alone_is_not_read_at_all():
    assert saids([message(Part("aside", "boot"))]) == []


def test_a_call_is_one_line_with_the_tool_in_brackets():
    call = Part("tool_call", '{"command": "just test\\njust lint"}', name="Bash")
    assert [one.text for one in saids([message(call)])] == ["[Bash] just test just lint"]


def test_of_a_long_output_the_ends_are_read():
    text = "a" * 3_000 + "b" * 3_000 + "c" * 3_000
    read = saids([message(Part("tool_result", text), role="tool", origin="tool")])[0]
    assert read.text.startswith("a")
    assert read.text.endswith("c")
    assert "b" not in read.text


def test_the_lowest_voice_in_a_message_is_its_origin():
    mixed = message(Part("text", "see"), Part("tool_result", "x"), role="user", origin="user")
    assert saids([mixed])[0].origin == "tool"


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

from __future__ import annotations

from lore.records import Part
from lore.text import parts
from lore.text.parts import lowest_origin, origin_of

MESSAGE = (
    Part("text", "Look at this."),
    Part("reasoning", "The person wants a fix."),
    Part("tool_call", "ls -l", name="bash", call_id="1"),
    Part("tool_result", "total 0", name="bash", call_id="1"),
    Part("image", "a cat on a roof", name="image"),
    Part("text", ""),
    Part("aside", "Contents of the boot file.", name="reminder"),
    Part("opaque", '{"type":"quark"}', name="quark"),
)


def test_said_are_the_words_without_tools_and_reasoning():
    assert parts.said(MESSAGE) == "Look at this.\na cat on a roof"


def test_what_lores_own_tools_say_is_not_searched():
    asked = Part("tool_call", '{"query": "press"}', name="mcp__lore__recall", call_id="1")
    told = Part("tool_result", "Stored 01a1 as a root", name="mcp__plugin_lore_lore__store")
    assert parts.searchable((asked, told, Part("text", "It is at Merete's."))) == (
        "It is at Merete's."
    )


def test_searchable_is_all_but_reasoning_and_what_nobody_said():
    assert parts.searchable(MESSAGE) == (
        "Look at this.\nbash ls -l\nbash total 0\nimage a cat on a roof"
    )


def test_readable_marks_tools_and_reasoning():
    assert parts.readable(MESSAGE) == (
        "Look at this.\n[reasoning] The person wants a fix.\n[bash] ls -l\ntotal 0\na cat on a roof"
        '\n[aside] Contents of the boot file.\n[opaque] {"type":"quark"}'
    )


def test_a_call_of_a_nameless_tool_is_marked_too():
    assert parts.readable([Part("tool_call", "x")]) == "[tool] x"


def test_a_huge_part_is_searchable_in_its_first_characters():
    assert len(parts.searchable([Part("tool_result", "x" * 100_000)])) == 60_000


def test_nothing_says_nothing():
    assert parts.said([]) == parts.searchable([]) == parts.readable([]) == ""


def test_what_a_tool_gave_back_is_a_tools_in_whoever_message_it_stands():
    assert origin_of(Part("tool_result", "x"), "user") == "tool"
    assert origin_of(Part("text", "x"), "user") == "user"
    assert origin_of(Part("text", "x", origin="web"), "user") == "web"


def test_a_part_has_no_more_trust_than_its_message():
    assert origin_of(Part("text", "x", origin="user"), "web") == "web"


def test_the_least_trusted_voice_counts_and_asides_have_none():
    said = (Part("text", "x"), Part("text", "y", origin="repo"), Part("aside", "z", origin="web"))
    assert lowest_origin(said, "user") == "repo"
    assert lowest_origin((Part("opaque", "z", origin="web"),), "assistant") == "assistant"

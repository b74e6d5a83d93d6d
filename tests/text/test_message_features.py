"""Message text, fingerprints and ranking features."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.records import Part
from lore.text import message_features
from lore.text.message_features import compute_features, lowest_origin, part_origin

ALL = (
    message_features.EMPTY,
    message_features.ENDS_IN_QUESTION,
    message_features.HAS_OPEN_QUESTION,
    message_features.HAS_TIME,
    message_features.HAS_NUMBER,
    message_features.FIRST_PERSON,
    message_features.STANDING,
    message_features.FROM_USER,
    message_features.FROM_ASSISTANT,
)


@pytest.mark.parametrize(
    ("text", "trait"),
    [
        ("", message_features.EMPTY),
        ("  \n", message_features.EMPTY),
        ("Is it?", message_features.ENDS_IN_QUESTION | message_features.HAS_OPEN_QUESTION),
        ("Is it? Yes.", message_features.HAS_OPEN_QUESTION),
        ("It rained yesterday", message_features.HAS_TIME),
        ("Back on Monday", message_features.HAS_TIME),
        ("In 1999", message_features.HAS_TIME | message_features.HAS_NUMBER),
        ("About 30000", message_features.HAS_NUMBER),
        ("a dozen eggs", message_features.HAS_NUMBER),
        ("I think so", message_features.FIRST_PERSON),
        ("OUR plan", message_features.FIRST_PERSON),
        ("plain", 0),
        ("lasting yearly mayor someone", 0),
    ],
)
def test_a_text_has_the_expected_features(text, trait):
    assert compute_features(text, "tool") == trait


@pytest.mark.parametrize(
    ("role", "trait"),
    [
        ("user", message_features.FROM_USER),
        ("assistant", message_features.FROM_ASSISTANT),
        ("tool", 0),
        ("system", 0),
    ],
)
def test_the_role_is_a_feature(role, trait):
    assert compute_features("plain", role) == trait


def test_a_standing_instruction_is_a_feature():
    assert compute_features("plain", "tool", standing=True) == message_features.STANDING


def test_a_question_far_from_the_end_is_answered_by_the_text_itself():
    assert compute_features("Is it? " + "x" * 300, "tool") == 0


def test_each_feature_has_its_own_bit():
    assert sum(ALL) == (1 << len(ALL)) - 1


@given(st.text(), st.sampled_from(["user", "assistant", "tool", "system"]), st.booleans())
def test_features_of_any_text_are_a_sum_of_bits(text, role, standing):
    assert 0 <= compute_features(text, role, standing=standing) <= sum(ALL)


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


def test_spoken_text_has_no_tools_and_no_reasoning():
    assert message_features.spoken_text(MESSAGE) == "Look at this.\na cat on a roof"


def test_calls_of_lores_own_tools_are_not_searchable():
    asked = Part("tool_call", '{"query": "press"}', name="mcp__lore__recall", call_id="1")
    told = Part("tool_result", "Stored 01a1 as a root", name="mcp__plugin_lore_lore__store")
    assert message_features.searchable_text((asked, told, Part("text", "It is at Merete's."))) == (
        "It is at Merete's."
    )


def test_searchable_text_has_no_reasoning_and_no_injected_text():
    assert message_features.searchable_text(MESSAGE) == (
        "Look at this.\nbash ls -l\nbash total 0\nimage a cat on a roof"
    )


def test_readable_text_marks_tools_and_reasoning():
    assert message_features.readable_text(MESSAGE) == (
        "Look at this.\n[reasoning] The person wants a fix.\n[bash] ls -l\ntotal 0\na cat on a roof"
        '\n[aside] Contents of the boot file.\n[opaque] {"type":"quark"}'
    )


def test_a_call_of_a_nameless_tool_is_marked_too():
    assert message_features.readable_text([Part("tool_call", "x")]) == "[tool] x"


def test_a_huge_part_is_searchable_in_its_first_characters():
    assert len(message_features.searchable_text([Part("tool_result", "x" * 100_000)])) == 60_000


def test_empty_parts_have_no_text():
    assert (
        message_features.spoken_text([])
        == message_features.searchable_text([])
        == message_features.readable_text([])
        == ""
    )


def test_a_tool_result_has_tool_origin_in_any_message():
    assert part_origin(Part("tool_result", "x"), "user") == "tool"
    assert part_origin(Part("text", "x"), "user") == "user"
    assert part_origin(Part("text", "x", origin="web"), "user") == "web"


def test_a_part_has_no_more_trust_than_its_message():
    assert part_origin(Part("text", "x", origin="user"), "web") == "web"


def test_the_least_trusted_origin_counts_without_injected_text():
    said = (Part("text", "x"), Part("text", "y", origin="repo"), Part("aside", "z", origin="web"))
    assert lowest_origin(said, "user") == "repo"
    assert lowest_origin((Part("opaque", "z", origin="web"),), "assistant") == "assistant"


def test_texts_with_the_same_words_share_a_fingerprint():
    assert message_features.word_fingerprint("The cache!") == message_features.word_fingerprint(
        "the  cache"
    )
    assert message_features.word_fingerprint("The cache!") != message_features.word_fingerprint(
        "The cash!"
    )
    assert message_features.text_fingerprint("The cache!") != message_features.text_fingerprint(
        "the  cache"
    )


def test_every_fingerprint_fits_into_the_database():
    for text in ("", "x", "\ud800", "早上好" * 1_000):
        assert -(2**63) <= message_features.text_fingerprint(text) < 2**63


def test_a_fingerprint_is_of_the_words_or_of_the_call_id():
    said = message_features.message_fingerprint("user", [Part("text", "We use  tabs.")])
    assert said == message_features.message_fingerprint("user", [Part("text", "We use tabs.")])
    assert said != message_features.message_fingerprint("assistant", [Part("text", "We use tabs.")])
    long = Part("tool_result", "a\nb\nc", call_id="toolu_1")
    cut = Part("tool_result", "a\n…", call_id="toolu_1")
    assert message_features.message_fingerprint(
        "tool", [long]
    ) == message_features.message_fingerprint("tool", [cut])


def test_text_outside_the_dialogue_does_not_change_the_fingerprint():
    spoken = [Part("text", "We use tabs.")]
    beside = [Part("aside", "Today is Monday."), *spoken]
    assert message_features.message_fingerprint(
        "user", beside
    ) == message_features.message_fingerprint("user", spoken)

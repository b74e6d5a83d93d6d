from __future__ import annotations

from lore.records import Part
from lore.text import digests


def test_texts_of_the_same_words_have_one_number():
    assert digests.of_words("The cache!") == digests.of_words("the  cache")
    assert digests.of_words("The cache!") != digests.of_words("The cash!")
    assert digests.of_text("The cache!") != digests.of_text("the  cache")


def test_a_number_fits_into_the_database_whatever_the_text():
    for text in ("", "x", "\ud800", "早上好" * 1_000):
        assert -(2**63) <= digests.of_text(text) < 2**63


def test_a_message_is_known_by_its_words_and_a_call_by_its_id():
    said = digests.digest_of("user", [Part("text", "We use  tabs.")])
    assert said == digests.digest_of("user", [Part("text", "We use tabs.")])
    assert said != digests.digest_of("assistant", [Part("text", "We use tabs.")])
    long = Part("tool_result", "a\nb\nc", call_id="toolu_1")
    cut = Part("tool_result", "a\n…", call_id="toolu_1")
    assert digests.digest_of("tool", [long]) == digests.digest_of("tool", [cut])


def test_what_stands_beside_the_talk_does_not_count():
    spoken = [Part("text", "We use tabs.")]
    beside = [Part("aside", "Today is Monday."), *spoken]
    assert digests.digest_of("user", beside) == digests.digest_of("user", spoken)

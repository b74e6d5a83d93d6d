"""Choosing: what concerns a prompt clearly, and what only repeats it."""

from __future__ import annotations

from dataclasses import replace

from lore.context import choosing
from lore.records import Fit, Hit
from lore.text import digests
from tests.fakes import NOON

PROMPT = "why does the token cache keep expired tokens?"


def fit(text: str = "TokenCache.get has no TTL check", **more: float) -> Fit:
    hit = Hit("1", "message", text, "", 0.0, "", NOON, 10)
    numbers = {"cosine": 0.6, "rarity": 6.0, "covered": 0.5, "age_days": 1.0, **more}
    return Fit(hit, **numbers)


def test_the_strongest_come_first_and_the_weak_do_not_pass():
    strong, fair, weak = fit(cosine=0.9), fit(cosine=0.6), fit(cosine=0.1)
    assert choosing.passing(PROMPT, [weak, fair, strong], 2.0) == [strong, fair]


def test_words_in_common_count_only_with_a_meaning_in_common():
    assert choosing.strength(fit(cosine=-0.2)) == 0.0
    assert choosing.strength(fit(rarity=0.0)) == 0.0


def test_what_is_old_is_weaker_but_never_nothing():
    young, old, ancient = (choosing.strength(fit(age_days=days)) for days in (0, 10, 10_000))
    assert young > old > ancient > 0.5 * young


def test_what_is_dated_in_the_future_is_no_stronger_than_what_is_new():
    assert choosing.strength(fit(age_days=-30)) == choosing.strength(fit(age_days=0))


def test_a_fragment_needs_fewer_words_in_common():
    message = fit()
    fragment = replace(message, hit=replace(message.hit, type="fragment"))
    assert choosing.strength(fragment) > choosing.strength(message)


def test_what_the_prompt_says_itself_does_not_pass():
    same = fit("The token cache keep expired tokens")
    assert choosing.passing(PROMPT, [same], 0.0) == []


def test_a_text_without_a_word_does_not_pass():
    assert choosing.passing(PROMPT, [fit("…")], 0.0) == []


def test_a_session_is_given_no_item_and_no_words_twice():
    texts = {"a": "The port is 3207.", "b": "the port is 3207", "c": "The port is 4000."}
    words = {digests.of_words("The port is 3207.")}
    assert choosing.fresh(texts, set(), set()) == ["a", "b", "c"]
    assert choosing.fresh(texts, {"c"}, set()) == ["a", "b"]
    assert choosing.fresh(texts, {"a"}, words) == ["c"]

"""Pasted text: whose words the sentences of a person's message are."""

from __future__ import annotations

import pytest

from lore.text.pasted_text import find_voices, leave_out_pasted

RULE = "We deploy with ops/deploy.sh."


@pytest.mark.parametrize(
    ("message", "voice"),
    [
        (RULE, "own"),
        (f"ok! then for the log: {RULE}", "own"),
        (f"[Image #1] is too small. {RULE}", "own"),
        (f"[...] {RULE}", "own"),
        (f"The reviewer says:\n\n{RULE}", "pasted"),
        (f"Implement the following plan:\n\n# Plan\n\n{RULE}", "doubtful"),
        (f"[07/06/26 16:35 main ~/code] {RULE}", "pasted"),
        (f"[cloud] {RULE}", "pasted"),
        (f"👀 {RULE}", "pasted"),
        (f"↳ {RULE}", "pasted"),
        (f'"name": "x", {RULE}', "pasted"),
        (f"11:56:19 {RULE}", "pasted"),
        (f"2025-09-18T22:52:19.6279853Z npm warn deprecated {RULE}", "pasted"),
        (f"npm warn {RULE}", "pasted"),
        (f"ada@harbor ~/code % echo {RULE}", "pasted"),
        (f"Deploys at 11:56:19 fail. {RULE}", "own"),
        (f"ERROR: it fails.\nWe know why.\n{RULE}", "own"),
        (f"TypeError: x\n    at main (/a/b.ts:2:1)\n{RULE}", "pasted"),
        (f"WARN a\nERROR b\n\n{RULE}", "own"),
    ],
)
def test_a_sentence_is_a_persons_own_unless_it_was_handed_over(message: str, voice: str):
    assert find_voices(message, [RULE]) == [voice]


def test_a_sentence_that_was_joined_of_two_lines_has_the_voice_of_the_one_before():
    message = "The reviewer says:\n\nUse tabs.\nWe deploy\nwith ops/deploy.sh."
    assert find_voices(message, ["Use tabs.", RULE]) == ["pasted", "pasted"]


def test_what_a_person_typed_around_a_log_remains():
    typed = leave_out_pasted("It fails again\n11:56:19 worker died\nWe need two workers.")
    assert typed.split("\n") == ["It fails again", "", "", "We need two workers."]


@pytest.mark.parametrize(
    "written",
    [
        "We **deploy** with ops/deploy.sh.",
        "We *deploy*\nwith `ops/deploy.sh`.",
        "__We__ deploy with ops/deploy.sh.",
    ],
)
def test_emphasis_makes_the_words_of_others_nobodys_own(written: str):
    assert find_voices(f"The reviewer says:\n\n{written}", [RULE]) == ["pasted"]
    assert find_voices(written, [RULE]) == ["own"]


def test_a_sentence_that_is_not_found_beside_pasted_text_is_doubtful():
    assert find_voices("Use tabs.\n\nThe reviewer says:\n\nNo.", ["Use tabs.", RULE]) == [
        "own",
        "doubtful",
    ]


@pytest.mark.parametrize("piece", ["「a", "„a", "«a", "<div>\n", '"a', "a:\n", "<think>\n"])
def test_texts_of_many_openings_are_read_in_linear_time(piece: str):
    text = piece * (200_000 // len(piece))
    assert len(find_voices(text, [RULE])) == 1  # quadratic, it takes most of a minute

from __future__ import annotations

import pytest

from lore.text.told import behind, day_asked, is_whole, stands_alone, strip_opening, told


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        (
            "I moved the launch to May 3, can you update the plan?",
            "I moved the launch to May 3",
        ),
        ("How do I add a user?", ""),
        ("Thanks, that helps a lot!", "That helps a lot!"),
        (
            "What should I cook, considering I already bought 2 kg of rice?",
            "I already bought 2 kg of rice",
        ),
        (
            "I'm trying to decide on a laptop, and I've saved $1,200 so far, what do you think?",
            "I've saved $1,200 so far",
        ),
        ("I met Ana on June 4, but I'm not sure how to thank her", "I met Ana on June 4"),
        ("We use pnpm.", "We use pnpm."),
        ("Please help me with the tests", ""),
    ],
)
def test_what_is_told_is_kept_without_what_is_asked(sentence, kept):
    assert told(sentence) == kept


def test_a_relative_clause_is_no_question():
    assert told("My rent is $900, which is down 10% from May") == (
        "My rent is $900, which is down 10% from May"
    )


def test_interjections_at_the_beginning_are_left_out():
    assert strip_opening("Ok, got it. Also, the port is 5432") == "The port is 5432"


@pytest.mark.parametrize(
    "sentence", ["It fails on Mondays.", "We go with option 2.", "I would fix that."]
)
def test_a_sentence_that_points_at_another_does_not_stand_alone(sentence):
    assert not stands_alone(sentence)


def test_a_sentence_that_names_its_matter_stands_alone():
    assert stands_alone("The cache in `store.py` is never cleared.")


@pytest.mark.parametrize("sentence", ["The code should either", "It says (see x", 'He said "no'])
def test_what_was_cut_off_is_not_whole(sentence):
    assert not is_whole(sentence)


def test_what_is_told_behind_a_question_is_found_too():
    said = "I moved to Porto in May, can you help me, considering I sold my car for $900?"
    assert told(said) == "I moved to Porto in May"
    assert behind(said) == "I sold my car for $900"


def test_what_points_at_the_first_half_is_told_with_it():
    said = "I chose between Ana's course and Leo's, so was I right, since I declined his offer?"
    assert behind(said) == "I chose between Ana's course and Leo's. I declined his offer"


@pytest.mark.parametrize(
    "said",
    [
        "I moved to Porto in May.",
        "Can you help me, since I sold my car?",
        "I moved to Porto, can you help me, considering my taste and my wish to cook?",
    ],
)
def test_nothing_is_behind_where_nothing_more_is_told(said):
    assert behind(said) == ""


def test_the_day_that_only_the_question_names_is_found():
    said = "I've planned a trip with Leo, can you help with our visit on May 9 at 11 AM?"
    assert day_asked(said) == "our visit on May 9 at 11 AM"
    assert day_asked("I leave on May 8, can you help with our visit on May 9?") == ""

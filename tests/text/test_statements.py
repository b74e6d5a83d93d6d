"""Statements and assertions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.statements import (
    LONGEST_CHARS,
    assertion_after_question,
    assertion_part,
    is_whole,
    question_day,
    split_statements,
    stands_alone,
    strip_opening,
)


def texts(text: str, **how: bool) -> list[str]:
    return [statement.text for statement in split_statements(text, **how)]


def test_emphasis_and_addresses_of_links_are_left_out():
    assert texts("The **cache** is in [the docs](https://example.com/x) now.") == [
        "The cache is in the docs now."
    ]


def test_blocks_of_code_quotes_and_tables_are_no_statements():
    text = "One.\n\n```py\nprint('Two.')\n```\n> Three.\n| Four | five |\n\nSix."
    assert texts(text) == ["One.", "Six."]


def test_a_short_block_of_code_belongs_to_the_line_before_it():
    first = split_statements("Run this:\n\n```bash\nmake test\n```")[0]
    assert (first.code, first.language) == ("make test", "bash")


def test_an_item_has_its_heading_and_its_lead():
    item = split_statements("## Settings\n\nThese matter:\n- `a` is on.")[-1]
    assert (item.heading, item.lead, item.is_item) == ("Settings", "These matter:", True)


def test_a_statement_has_the_sentence_before_it():
    assert split_statements("The cache is full. It fails.")[1].before == "The cache is full."


def test_typed_sentences_end_with_the_line():
    assert texts("use tabs\nnever spaces", by_line=True) == ["use tabs", "never spaces"]
    assert texts("use tabs\nnever spaces") == ["use tabs never spaces"]


def test_a_sentence_without_end_is_data():
    assert texts("x" * (LONGEST_CHARS + 1)) == []


@given(st.text(max_size=400))
def test_every_statement_is_a_part_of_the_text(text):
    kept = {letter for letter in text if not letter.isspace()}
    for statement in split_statements(text):
        assert set(statement.text.replace(" ", "")) <= kept


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
def test_the_assertion_is_split_from_the_question(sentence, kept):
    assert assertion_part(sentence) == kept


def test_a_relative_clause_is_no_question():
    assert assertion_part("My rent is $900, which is down 10% from May") == (
        "My rent is $900, which is down 10% from May"
    )


def test_interjections_at_the_beginning_are_left_out():
    assert strip_opening("Ok, got it. Also, the port is 5432") == "The port is 5432"


@pytest.mark.parametrize(
    "sentence", ["It fails on Mondays.", "We go with option 2.", "I would fix that."]
)
def test_a_sentence_that_points_at_another_does_not_stand_alone(sentence):
    assert not stands_alone(sentence)


def test_a_sentence_that_names_its_subject_stands_alone():
    assert stands_alone("The cache in `store.py` is never cleared.")


@pytest.mark.parametrize("sentence", ["The code should either", "It says (see x", 'He said "no'])
def test_a_truncated_sentence_is_not_whole(sentence):
    assert not is_whole(sentence)


def test_an_assertion_after_a_question_is_found():
    said = "I moved to Porto in May, can you help me, considering I sold my car for $900?"
    assert assertion_part(said) == "I moved to Porto in May"
    assert assertion_after_question(said) == "I sold my car for $900"


def test_a_clause_that_refers_to_the_first_half_includes_it():
    said = "I chose between Ana's course and Leo's, so was I right, since I declined his offer?"
    assert (
        assertion_after_question(said)
        == "I chose between Ana's course and Leo's. I declined his offer"
    )


@pytest.mark.parametrize(
    "said",
    [
        "I moved to Porto in May.",
        "Can you help me, since I sold my car?",
        "I moved to Porto, can you help me, considering my taste and my wish to cook?",
    ],
)
def test_there_may_be_no_assertion_after_a_question(said):
    assert assertion_after_question(said) == ""


def test_the_day_that_only_the_question_names_is_found():
    said = "I've planned a trip with Leo, can you help with our visit on May 9 at 11 AM?"
    assert question_day(said) == "our visit on May 9 at 11 AM"
    assert question_day("I leave on May 8, can you help with our visit on May 9?") == ""

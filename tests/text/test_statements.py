"""Statements and assertions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.statements import (
    LONGEST_CHARS,
    is_whole,
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


def test_code_and_names_stay_to_the_byte():
    said = (
        "**Cause:** `a  b` in __init__ of `Box<T>` drops **kwargs, #b5bd68 and --flag;"
        " see *src/x.py*, src/**/*.ts and handlers[name](request.body)."
    )
    assert texts(said) == [
        "Cause: `a  b` in __init__ of `Box<T>` drops **kwargs, #b5bd68 and --flag;"
        " see src/x.py, src/**/*.ts and handlers[name](request.body)."
    ]

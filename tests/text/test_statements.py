from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.text.statements import LONGEST_CHARS, cut


def texts(text: str, **how: bool) -> list[str]:
    return [statement.text for statement in cut(text, **how)]


def test_emphasis_and_addresses_of_links_are_left_out():
    assert texts("The **cache** is in [the docs](https://example.com/x) now.") == [
        "The cache is in the docs now."
    ]


def test_blocks_of_code_quotes_and_tables_are_no_statements():
    text = "One.\n\n```py\nprint('Two.')\n```\n> Three.\n| Four | five |\n\nSix."
    assert texts(text) == ["One.", "Six."]


def test_a_short_block_of_code_belongs_to_the_line_before_it():
    first = cut("Run this:\n\n```bash\nmake test\n```")[0]
    assert (first.code, first.language) == ("make test", "bash")


def test_an_item_knows_its_heading_and_what_introduces_it():
    item = cut("## Settings\n\nThese matter:\n- `a` is on.")[-1]
    assert (item.heading, item.lead, item.is_item) == ("Settings", "These matter:", True)


def test_a_sentence_knows_the_one_before_it():
    assert cut("The cache is full. It fails.")[1].before == "The cache is full."


def test_people_end_a_sentence_with_the_line():
    assert texts("use tabs\nnever spaces", by_line=True) == ["use tabs", "never spaces"]
    assert texts("use tabs\nnever spaces") == ["use tabs never spaces"]


def test_a_sentence_without_end_is_data():
    assert texts("x" * (LONGEST_CHARS + 1)) == []


@given(st.text(max_size=400))
def test_whatever_is_cut_stands_in_the_text(text):
    kept = {letter for letter in text if not letter.isspace()}
    for statement in cut(text):
        assert set(statement.text.replace(" ", "")) <= kept

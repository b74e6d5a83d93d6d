from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline.log_writer import MAX_CHARS, split_clauses, weigh_words


def texts(text: str, *, person: bool = True) -> list[str]:
    return [clause.text for clause in split_clauses(text, person=person)]


def test_greetings_headings_rules_and_code_are_left_out():
    said = (
        "Sure!\n\n## Steps\n\n---\n\n```python\nport = 8080\n```\nThe harbor listens on port 3207."
    )
    assert texts(said) == ["The harbor listens on port 3207."]


def test_markup_and_the_words_that_only_ask_are_taken_off():
    said = "- **Could you please help me** to migrate `src/db.py` to PostgreSQL 18?"
    assert texts(said) == ["migrate src/db.py to PostgreSQL 18?"]


def test_a_long_sentence_is_taken_apart_word_for_word():
    said = (
        "We decided to keep SQLite for the laptop, because harbor servers sleep at night,"
        " but PostgreSQL serves the team on harbor-2 with pgvector 0.8.5"
    )
    found = texts(said)
    assert len(found) == 3
    assert all(piece in said for piece in found)


def test_decisions_errors_and_lasting_instructions_count_more():
    def bonus(said: str) -> float:
        return split_clauses(said, person=True)[0].bonus

    plain = bonus("The red boat lies beside pier four")
    assert bonus("We switched the boat to nylon ropes") > plain
    assert bonus("The build failed with ImportError in harbor") > plain
    assert bonus("Always paint boats before the winter storms") > plain


def test_of_tool_traffic_the_command_and_what_says_how_it_went_are_kept():
    said = (
        "[Bash] uv run pytest -q tests/store\n[result] collected\nE   KeyError: 'berth'\n1 failed"
    )
    found = split_clauses(said, person=False)
    assert [clause.text for clause in found] == [
        "[Bash] uv run pytest -q tests/store",
        "E   KeyError: 'berth'",
        "1 failed",
    ]
    assert all(clause.is_tool_line for clause in found)


def test_numbers_names_and_identifiers_weigh_more_than_words_that_say_little():
    weights = weigh_words("please use port 3207 of harbor_server near Bergen town")
    assert weights["3207"] > weights["town"] > weights["use"]
    assert weights["harbor"] > weights["town"]
    assert weights["bergen"] > weights["town"]


@given(st.text(max_size=2_000))
def test_any_text_is_taken_apart_into_short_statements(said: str):
    assert all(0 < len(clause.text) <= MAX_CHARS + 1 for clause in split_clauses(said, person=True))

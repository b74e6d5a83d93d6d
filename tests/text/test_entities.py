from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import entities


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We met Ada Lovelace there.", ["ada lovelace"]),
        (
            "the University of the Arts",
            ["university of the arts", "university", "arts"],
        ),
        ("Ludwig van Beethoven wrote", ["ludwig van beethoven", "ludwig", "beethoven"]),
        (
            "Romeo and Juliet of Verona",
            ["romeo and juliet of verona", "romeo", "juliet of verona", "juliet", "verona"],
        ),
        ("Alice's Restaurant", ["alice", "restaurant"]),
        ("Alice’s restaurant", ["alice"]),
        ("Johnson & Sons", ["johnson sons"]),
        ("Henry VIII. Then Anne Boleyn", ["henry viii", "anne boleyn"]),
        ("O'Brien called", ["obrien"]),
        ("Café Müller", ["cafe muller"]),
        ("call getUserName in src/db/todos.ts", ["getusername", "src db todos ts"]),
        ("set MAX_SIZE first", ["max_size"]),
        ("the HTTP/2 server", ["http 2"]),
        ("On Monday in March", []),
        ("May 2023", []),
        ("In 1999 Prince sang", ["prince"]),
        ("nothing here", []),
        ("It is. The. He.", []),
        ("", []),
        ("X", []),
        ("The Beatles", ["beatles"]),
        ("She and Bob", ["bob"]),
        ("World War 2", ["world war 2"]),
        ("Ada. Bob", ["ada", "bob"]),
        ("Ada Ada, Ada Ada", ["ada ada"]),
    ],
)
def test_names_are_found(text, names):
    found = entities.names(text)
    assert [name for name in names if name not in found] == []
    assert [name for name in found if name not in names] == []


def test_a_day_in_a_name_is_part_of_it():
    assert entities.names("in the Sunday Times") == ["sunday times"]


def test_a_date_before_a_name_is_not():
    assert entities.names("until June 1999 Prince sang") == ["prince"]


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("The Beatles", "beatles"),
        ("The The", "the"),
        ("the the band", "band"),
        ("Alice’s", "alice"),
        ("Jones'", "jones"),
        ("Ünïcode", "unicode"),
        ("src/db/todos.ts", "src db todos ts"),
        ("  A   B ", "a b"),
        ("", ""),
        ("?!", ""),
    ],
)
def test_spellings_of_one_name_meet(name, normal):
    assert entities.normalise(name) == normal


@given(st.text())
def test_normalising_twice_changes_nothing_more(name):
    once = entities.normalise(name)
    assert entities.normalise(once) == once


def test_a_title_is_known_whole_without_parentheses_and_by_its_first_part():
    assert entities.title_names("Paris, Texas (film)") == [
        "paris texas film",
        "paris texas",
        "paris",
    ]


def test_a_short_first_part_of_a_title_says_too_little():
    assert entities.title_names("Ada, Countess") == ["ada countess"]


def test_a_title_as_long_as_a_paragraph_is_no_name():
    assert entities.title_names("word " * 40) == []


def test_the_title_comes_first_and_each_name_once():
    found = entities.extract("Ada met Bob.", title="Ada")
    assert found == (entities.Mention("ada", is_title=True), entities.Mention("bob"))


def test_a_text_has_a_limited_number_of_mentions():
    text = ". ".join(f"Name{i} Surname{i}" for i in range(300))
    assert len(entities.extract(text, title="Some Title")) == entities.MOST


@given(st.text(), st.text(max_size=100))
def test_mentions_of_anything_are_few_short_and_distinct(text, title):
    found = entities.extract(text, title=title)
    names = [mention.name for mention in found]
    assert len(names) <= entities.MOST
    assert len(set(names)) == len(names)
    assert all(0 < len(name) <= 80 for name in names)


@given(st.lists(st.sampled_from(["Ada", "of", "the", "Bob's", "In", "1999", "&", "May", "x", "."])))
def test_names_are_never_calendar_words_or_stop_words(pieces):
    found = entities.names(" ".join(pieces))
    assert not {"may", "in", "the", "of", "1999"} & set(found)
    assert all(entities.normalise(name) == name for name in found)


def test_phrases_are_the_runs_of_two_and_more_words():
    assert list(entities.phrases("Who wrote Emma")) == [
        "who wrote",
        "who wrote emma",
        "wrote emma",
    ]


def test_phrases_have_a_longest():
    assert max(len(phrase.split()) for phrase in entities.phrases("word " * 20)) == 8

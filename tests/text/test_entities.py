"""Entities, values and specific details."""

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
    found = entities.extract_names(text)
    assert [name for name in names if name not in found] == []
    assert [name for name in found if name not in names] == []


def test_a_day_in_a_name_is_part_of_it():
    assert entities.extract_names("in the Sunday Times") == ["sunday times"]


def test_a_date_before_a_name_is_not():
    assert entities.extract_names("until June 1999 Prince sang") == ["prince"]


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
def test_spellings_of_one_name_are_normalised_alike(name, normal):
    assert entities.normalise(name) == normal


@given(st.text())
def test_normalising_twice_changes_nothing_more(name):
    once = entities.normalise(name)
    assert entities.normalise(once) == once


def test_a_title_is_a_name_whole_without_parentheses_and_by_its_first_part():
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
    found = entities.extract_mentions("Ada met Bob.", title="Ada")
    assert found == (entities.Mention("ada", is_title=True), entities.Mention("bob"))


def test_a_text_has_a_limited_number_of_mentions():
    text = ". ".join(f"Name{i} Surname{i}" for i in range(300))
    assert len(entities.extract_mentions(text, title="Some Title")) == entities.MAX_MENTIONS


@given(st.text(), st.text(max_size=100))
def test_mentions_of_anything_are_few_short_and_distinct(text, title):
    found = entities.extract_mentions(text, title=title)
    names = [mention.name for mention in found]
    assert len(names) <= entities.MAX_MENTIONS
    assert len(set(names)) == len(names)
    assert all(0 < len(name) <= 80 for name in names)


@given(st.lists(st.sampled_from(["Ada", "of", "the", "Bob's", "In", "1999", "&", "May", "x", "."])))
def test_names_are_never_calendar_words_or_stop_words(pieces):
    found = entities.extract_names(" ".join(pieces))
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


def test_numbers_dates_names_and_code_are_counted_apart():
    found = entities.count_specifics('On May 3 Ana paid $40 for "a dune" via `pay_now()`')
    assert (found.dates, found.names, found.numbers, found.quoted, found.code) == (1, 1, 1, 1, 1)


def test_a_sentence_of_plain_words_names_nothing():
    assert entities.count_specifics("We talked about this and that for a while.").total == 0


def test_paths_flags_and_names_of_code_are_identifiers():
    found = entities.identifiers("Set --dry-run in src/app/main.py, see getUser and MAX_SIZE")
    assert found == ("--dry-run", "src/app/main.py", "getUser", "MAX_SIZE")


def test_yesterday_is_a_relative_date():
    assert entities.has_relative_date("I met her yesterday")
    assert not entities.has_relative_date("I met her on 4 May")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The budget is $550.", "The budget is $600."),
        ("Ana meets Bob on May 3.", "Ana meets Bob on May 4."),
        ("Run `mise run test`.", "Run `mise run lint`."),
        ("We use tabs.", "We do not use tabs."),
        ("We use tabs.", "We don’t use tabs."),
        ("The cache is on.", "The cache is off."),
        ("The release is on 2024-05-01.", "The release is on 2024-06-01."),
        ("Kept in Postgres", "Kept in MySQL"),
        ("It opens three ports", "It opens 4 ports"),
    ],
)
def test_another_value_is_another_statement(one, other):
    assert not entities.values_agree(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I use Flask 2.3.1.", "I'm using Flask 2.3.1 and SQLite 3.39 for my app."),
        ("We meet twice a week.", "Twice a week we meet."),
        ("There are three dogs.", "There are 3 dogs."),
        ("The limit is 5 in app.toml", "The limit is in app.toml"),
        ("Orders are kept in Postgres", "Postgres keeps the orders"),
        ("The pool has 20 connections", "There are 20 connections in the pool"),
        ("Never deploy on Fridays", "Do not deploy on Fridays"),
    ],
)
def test_one_may_say_more_than_the_other(one, other):
    assert entities.values_agree(one, other)


def test_a_text_with_fewer_values_does_not_cover_one_with_more():
    more, less = "The limit is 5 in app.toml", "The limit is in app.toml"
    assert entities.covers_values(more, less)
    assert not entities.covers_values(less, more)
    assert entities.covers_values("Postgres keeps the orders", "Orders are kept in Postgres")

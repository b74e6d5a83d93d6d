from __future__ import annotations

from lore.text import specifics


def test_numbers_dates_names_and_code_are_counted_apart():
    found = specifics.of('On May 3 Ana paid $40 for "a dune" via `pay_now()`')
    assert (found.dates, found.names, found.numbers, found.quoted, found.code) == (1, 1, 1, 1, 1)


def test_a_sentence_of_plain_words_names_nothing():
    assert specifics.of("We talked about this and that for a while.").total == 0


def test_paths_flags_and_names_of_code_are_identifiers():
    found = specifics.identifiers("Set --dry-run in src/app/main.py, see getUser and MAX_SIZE")
    assert found == ("--dry-run", "src/app/main.py", "getUser", "MAX_SIZE")


def test_yesterday_is_said_by_the_day_of_speaking():
    assert specifics.is_relative("I met her yesterday")
    assert not specifics.is_relative("I met her on 4 May")

from __future__ import annotations

import pytest

from lore.text import instructions, withdrawals

RULES = (
    "Always run the linter before commits.",
    "Also, never push to main without asking.",
    "From now on use tabs for indentation.",
    "Please always write tests with pytest.",
    "Never run the linter on generated files.",
    "Use pnpm going forward.",
    "No more emojis in commit messages.",
    "Always answer in English.",
    "Always use tabs in Makefiles.",
    "Make sure you run mypy before committing.",
    "always run `make check` before every commit.",
)


def taken_back(sentence: str) -> list[str]:
    found = withdrawals.find(sentence)
    return [RULES[place] for place in withdrawals.meant(found, RULES)] if found else []


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("You no longer need to run the linter before commits.", 0),
        ("btw, you no longer have to run the linter before commits, CI does it", 0),
        ("Stop running the linter before commits.", 0),
        ("You don't need to ask before pushing anymore", 1),
        ("From now on use four spaces instead of tabs for indentation.", 2),
        ("And forget the rule about pytest.", 3),
        ("Don't bother with pytest any more.", 3),
        ("From now on use unittest instead of pytest.", 3),
        ("Please forget the rule that tests use pytest", 3),
        ("Going forward, use npm instead of pnpm.", 5),
        ("I no longer use pnpm.", 5),
        ("Drop the emoji rule.", 6),
        ("Forget what I said about emojis.", 6),
        ("The rule about emojis no longer applies.", 6),
        ("From now on answer in German instead of English.", 7),
        ("No need to run mypy anymore.", 9),
        ("Don’t bother running mypy any more.", 9),
        ("dont bother with mypy anymore", 9),
        ("Forget make check, from now on it's just check, on the laptop.", 10),
        ("Forget make check.", 10),
        ("Scrap make check: from now on we run just check before every commit.", 10),
        ("Drop pnpm, going forward we use npm.", 5),
        ("No more tabs for indentation.", 2),
        ("so forget `make check`, from now on it's `just check`, it also runs the web tests.", 10),
    ],
)
def test_a_rule_that_is_taken_back_is_the_one_that_is_meant(sentence, rule):
    assert taken_back(sentence) == [RULES[rule]]


@pytest.mark.parametrize(
    "sentence",
    [
        "You no longer need to run the tests before commits.",
        "You no longer need to run the linter before commits on this branch.",
        "You don't need to run the linter any more today.",
        "Once CI is green you no longer need to run the linter before commits.",
        "Do I no longer need to run the linter before commits?",
        "You no longer need to run the linter before commits?",
        "He said you no longer need to run the linter before commits.",
        "The pipeline no longer needs to run the linter before commits.",
        "You no longer need to run the linter before commits and releases.",
        "Forget the rule about commits.",
        "Forget it.",
        "forget `make check`, it works.",
        "Forget the linter error.",
        "Forget the tests, from now on we deploy from main.",
        "Forget make check for now, from now on be quick.",
        "Forget check make, from now on it's just check.",
        "Drop generated files, from now on we keep them out.",
        "No more errors.",
        "No more emojis in commit messages.",
        "She said forget make check, from now on it's just check.",
        "Should we forget make check, from now on?",
        "From now on use spaces instead of tabs in Python files.",
        "From now on name branches in German instead of English.",
        "Use unittest instead of pytest here.",
        "Don't run the linter.",
        "Stop it.",
        "Always run the linter before commits.",
    ],
)
def test_no_rule_goes_that_was_not_meant(sentence):
    assert taken_back(sentence) == []


def test_a_name_alone_takes_back_only_beside_a_new_rule():
    assert withdrawals.find_beside("Forget make check.", "", "From now on we run just check.")
    assert withdrawals.find_beside("Forget make check.", "Always run just check.", "")
    assert withdrawals.find_beside("Forget make check.", "Commit it.", "Thanks.") is None
    assert withdrawals.find_beside("You no longer need to run mypy.")


def test_one_rule_said_twice_is_taken_back_in_both_wordings():
    found = withdrawals.find("You no longer need to run the linter before commits.")
    assert found
    said = ("Always run the linter before commits.", "Please run the linter before all commits")
    assert withdrawals.meant(found, said) == [0, 1]


def test_what_is_replaced_already_is_no_rule_for_it():
    found = withdrawals.find("From now on use four spaces instead of tabs.")
    assert found
    assert withdrawals.meant(found, ["I prefer spaces over tabs.", "Never use tabs."]) == []
    assert withdrawals.meant(found, ["I prefer tabs over spaces."]) == [0]


def test_a_sentence_that_also_asks_for_something_stands_itself():
    assert withdrawals.is_only("You no longer need to run the linter.")
    assert withdrawals.is_only("From now on you no longer need to run the linter.")
    assert not withdrawals.is_only("Stop running the linter before commits.")
    assert not withdrawals.is_only("From now on use spaces instead of tabs.")
    assert not withdrawals.is_only("Always run the linter.")


def test_sentences_come_with_what_is_quoted_masked():
    assert list(instructions.sentences("Never use `eval`. Ok. Always test it.")) == [
        ("Never use `eval`.", "Never use \x01\x01\x01\x01\x01\x01."),
        ("Always test it.", "Always test it."),
    ]

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lore.text.restatement import find_dates, is_restated, possible_dates


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("No, run the tests before you push.", "Run the tests before you push."),
        ("From now on never commit to main.", "Never commit to main from now on."),
        ("Don’t run the tests before you push.", "Do not run the tests before you push."),
        ("My rules:\n- use tabs\n- sign every commit", "Sign every commit."),
        ("Fridays have deploys. The export is at 02:30.", "Deploys: Fridays; export: 02:30."),
        ("We moved from Postgres to Mariadb.", "We moved to Mariadb."),
        ("Never push.\n\nRun the tests.", "Run the tests. Never push."),
        ("Hello.", "It is."),
    ],
)
def test_a_text_says_a_statement_with_the_same_negation_and_order(text: str, statement: str):
    assert is_restated(statement, [text])


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("Run the tests.", "Do not run the tests."),
        ("Never:\n- push to main\n- deploy on Fridays", "Push to main."),
        ("Never push to main, deploy on Fridays.", "Never deploy on Fridays."),
        ("Do not push to main or deploy on Fridays.", "Deploy on Fridays."),
        ("Nobody may push to main.", "May push to main."),
        ("Bitte nicht am Freitag liefern.", "Bitte am Freitag liefern."),
        ("Test before you push, ask after you deploy.", "Test after you deploy."),
        ("Keep orders in Redis instead of Postgres.", "Keep orders in Postgres."),
        ("Redis replaces Postgres.", "Postgres replaces Redis."),
        ("The api is on 8443, the web on 9443.", "The api is on 9443, the web on 8443."),
    ],
)
def test_a_text_does_not_say_its_words_in_another_sense(text: str, statement: str):
    assert not is_restated(statement, [text])


@pytest.mark.parametrize(
    ("known", "text", "statement", "is_said"),
    [
        ("Deploy only on Fridays.", "Make that Mondays.", "Deploy only on Mondays.", True),
        ("Never deploy on Fridays.", "On Mondays too.", "Never deploy on Fridays, Mondays.", True),
        ("Orders are in MySQL.", "Moved from Postgres to Maria.", "Orders are in Postgres.", False),
        ("Orders are in MySQL.", "We did not move to Maria.", "Orders are in Maria.", False),
        ("Do not use npm.", "Use pnpm.", "Do not use pnpm.", False),
        ("Ask before you deploy.", "Also Eva.", "Ask Eva after you deploy.", False),
        ("Ask before you deploy.", "Also Eva.", "Never ask Eva before you deploy.", False),
    ],
)
def test_a_correction_turns_neither_what_is_known_nor_what_is_new(
    known: str, text: str, statement: str, *, is_said: bool
):
    assert is_restated(statement, [text], known=known) is is_said


def test_a_day_that_a_text_means_is_one_of_its_dates():
    at = datetime(2026, 5, 13, 12, tzinfo=UTC)
    assert "2026-05-13" in possible_dates("It broke.", at)
    assert "2026-05-12" in possible_dates("It broke yesterday.", at)
    assert {"2026-05-15", "2026-05-08"} <= possible_dates("It breaks each Friday.", at)
    assert {"2026-06-03", "2026-06"} <= possible_dates("The freeze ends on June 3rd.", at)
    assert "2031-01-01" in possible_dates("The freeze ends on 1 January 2031.", at)
    assert "2031-01-01" not in possible_dates("The freeze ends on 31 February.", at)


def test_a_date_in_a_name_is_part_of_the_name():
    assert find_dates("gpt-4o-2099-01-01 in logs/2026-05-13.txt, since 2026-05-12.") == {
        "2026-05-12"
    }

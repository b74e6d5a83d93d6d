from __future__ import annotations

import numpy as np

from lore.recall import log_lines
from lore.recall.question import parse
from tests.fakes import NOON

LOG = "2026-05-13\nMara: The berth costs 40 crowns\nOle: The lamp is broken\n2026-05-14\nMara: Tea"
TOLD: tuple[tuple[str, ...], ...] = ((), ("m1",), ("m2",), (), ("m3",))


def choose(question: str, known: tuple[str, ...] = (), most: int = 220) -> log_lines.Shown:
    parsed = parse(question, NOON)
    rarity = np.ones(len(parsed.terms))
    return log_lines.choose(LOG, TOLD, parsed, rarity, most_tokens=most, known=known)


def test_only_lines_that_fit_are_shown_with_their_day_and_messages():
    shown = choose("What does the berth cost in crowns?")
    assert shown == ("2026-05-13\nMara: The berth costs 40 crowns", ("m1",))


def test_a_log_that_was_found_by_its_meaning_is_shown_whole():
    assert choose("okapi") == (LOG, ("m1", "m2", "m3"))


def test_a_line_whose_message_is_shown_already_is_left_out():
    assert choose("berth lamp", known=("m1",)).sources == ("m2",)
    assert choose("berth", known=("m1", "m2", "m3")) == ("", ())


def test_the_messages_of_the_line_that_fits_best_come_first():
    assert choose("the broken lamp of Ole, the berth").sources[0] == "m2"


def test_lines_are_shown_while_they_fit_the_budget_and_at_least_one():
    assert choose("okapi", most=1).sources == ("m1",)
    assert choose("okapi", most=10).sources == ("m1", "m3")

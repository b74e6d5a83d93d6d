"""Moods and intentions are stripped; the facts in them are kept."""

from __future__ import annotations

import pytest

from lore.llm.offline import statement_tone
from tests.llm.offline.exchanges import contents


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        (
            "I'm kinda worried about my garden, I planted 40 tulips on March 3",
            "My garden: I planted 40 tulips on March 3",
        ),
        (
            "I'm stressed about watering my plants, like my $300 bonsai from Kyoto",
            "My plants: my $300 bonsai from Kyoto",
        ),
        (
            "I'm stuck, and my friend Ines, who is 70, lent me her van",
            "My friend Ines, who is 70, lent me her van",
        ),
        ("I'm worried that I only sold 12 tickets in Porto", "I only sold 12 tickets in Porto"),
        (
            "I repaired 3 bikes on May 2, but I'm kinda worried it's not enough",
            "I repaired 3 bikes on May 2",
        ),
        (
            "I joined a choir on May 2, and I want to make sure I can keep up",
            "I joined a choir on May 2",
        ),
    ],
)
def test_what_a_mood_encloses_stands_without_it(said, stated):
    assert statement_tone.strip_sentiment(said) == stated


@pytest.mark.parametrize(
    "said",
    [
        "I'm kinda worried that I won't meet the deadline of the choir",
        "I'm considering using a tool for tickets by May 2, as I learned about it at a panel",
        "I'm trying to design a page for tickets using Flask, and I want to make sure it's right",
        "I'm feeling overwhelmed with the choir and the talk on August 2",
        "I'm excited to get started with the tickets",
        "I'm worried that selling tickets for $12 in August",
    ],
)
def test_a_mood_without_amount_person_or_act_states_nothing(said):
    assert statement_tone.strip_sentiment(said) == ""


@pytest.mark.parametrize(
    "said",
    [
        "I'm considering shifting from radio to film after advice from Ines on April 2",
        "I'm thinking of asking my mentor Ines to read the draft",
        "I'm torn between a salary of $110,000 here and $120,000 in Porto",
        "I'm trying to reach my goal of 90% by May 2",
        "I'm worried about the patent I filed on May 15, 2024",
        "I've never used a spreadsheet for my taxes",
    ],
)
def test_an_intention_with_a_person_an_amount_or_an_act_is_kept_whole(said):
    assert statement_tone.strip_sentiment(said) == said


def test_what_is_feared_is_never_stated_as_done():
    assert "won't" in statement_tone.strip_sentiment(
        "I'm worried that I won't sell 12 tickets in Porto by May 2"
    )
    assert statement_tone.strip_sentiment("I'm worried that I won't sell 12 tickets").startswith(
        "I'm worried"
    )


def test_what_someone_will_do_next_is_not_kept_but_what_they_will_pay_is():
    assert contents(("user", "I'll talk to Ines about the 40 tickets before May 2.")) == []
    paid = "I'll raise my monthly savings to $300 until the move."
    assert contents(("user", paid)) == [paid]


def test_what_is_planned_for_a_day_is_kept():
    said = "I'm aiming to finish the draft by May 2"
    assert statement_tone.strip_sentiment(said) == said

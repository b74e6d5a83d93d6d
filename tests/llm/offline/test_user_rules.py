"""User rules: statements and preferences are extracted; moods and vague remarks are not."""

from __future__ import annotations

import pytest

from lore.llm.offline import user_rules
from lore.llm.offline.sentence_rules import Finding
from tests.digest.conversations import message_text
from tests.llm.offline.exchanges import contents


def found(text: str, *, voice: str = "user", in_code: bool = False) -> list[Finding]:
    return list(
        user_rules.find_in_user_message(
            message_text(0, text, voice=voice), is_conversation=voice != "user", at_work=in_code
        )
    )


@pytest.mark.parametrize(
    ("text", "kind", "corrects"),
    [
        ("I prefer short commit messages without emojis.", "preference", ""),
        ("We switched from hemp ropes to nylon in March.", "decision", "hemp ropes"),
        ("My sister Ana moved to Lisbon on June 4.", "fact", ""),
    ],
)
def test_a_finding_has_its_kind_and_what_it_replaces(text: str, kind: str, corrects: str):
    (one,) = found(text)
    assert (one.text, one.kind, one.corrects) == (text, kind, corrects)


def test_rules_come_before_decisions_and_these_before_facts():
    (rule,) = found("Always answer in metric units when I ask.")
    (choice,) = found("We switched from hemp ropes to nylon in March.")
    (fact,) = found("My sister Ana moved to Lisbon on June 4.")
    assert rule.score > choice.score > fact.score
    assert rule.importance >= choice.importance > fact.importance


def test_a_named_speaker_is_named_and_only_statements_about_themselves_are_kept():
    (one,) = found("I moved to Lisbon on June 4 with Ana.", voice="Mara")
    assert one.text == "Mara: I moved to Lisbon on June 4 with Ana."
    assert found("You moved to Lisbon on June 4 with Ana.", voice="Mara") == []


def test_a_relative_day_gets_its_date():
    (one,) = found("I decided yesterday to use SQLite 3.39 for my data.")
    assert one.text.endswith("(said on 13 May 2026)")


def test_a_long_message_at_work_counts_as_pasted():
    rule = "I prefer short commit messages without emojis."
    assert found(rule, in_code=True)
    pasted = rule + " The next line is another one." * (user_rules.MAX_OWN_CHARS // 30 + 1)
    assert found(pasted, in_code=True) == []
    assert found(pasted)


@pytest.mark.parametrize(
    "text",
    [
        "<note>I prefer short commit messages without emojis.</note>",
        "[I prefer short commit messages without emojis]",
        "--- I prefer short commit messages without emojis.",
    ],
)
def test_text_inserted_by_programs_is_ignored(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Always keep the tone of answers brief.", "style"),
        ("Always write a test for each bug.", "testing"),
        ("Never push to the main branch directly.", "workflow"),
        ("Always speak to me in Norwegian, please.", "general"),
    ],
)
def test_a_preference_has_a_category(text: str, category: str):
    (one,) = found(text)
    assert one.payload == {"category": category}


def test_a_decision_has_its_reason_and_what_it_was_chosen_over():
    (one,) = found("We switched from hemp to nylon in March because hemp rots in salt water.")
    assert one.payload["rationale"] == "hemp rots in salt water"
    assert one.payload["alternatives"] == ["hemp"]


def test_a_sentence_ends_with_a_full_stop():
    assert user_rules.with_period("It is so") == "It is so."
    assert user_rules.with_period("It is so!") == "It is so!"


@pytest.mark.parametrize(
    "said",
    [
        "I'm working with a triangle that has sides of 6, 8 and 10 cm",
        "I need to multiply these: (4 * 13) + 2",
        "I won't use \\( 5! \\) since that is for all 5",
        "I've researched that the boot has a wool lining, which improves warmth by 25%",
        "I've been considering the lamp because of its mirror that provides 30% more light",
    ],
)
def test_exercises_and_product_claims_are_recognised(said):
    assert user_rules.is_exercise(said)


@pytest.mark.parametrize(
    "said",
    [
        "I solved 5 probability problems and scored 80% on the quiz",
        "I just got a lamp with a mirror that provides 30% more light",
        "I've never taken an exam about triangles",
        "I rated the course 8/10 on May 3",
        "I'm using `a = 3` as the default in `conf.py`",
    ],
)
def test_facts_about_learning_and_purchases_are_no_exercises(said):
    assert not user_rules.is_exercise(said)


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
def test_a_fact_is_stripped_of_its_mood(said, stated):
    assert user_rules.strip_sentiment(said) == stated


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
    assert user_rules.strip_sentiment(said) == ""


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
    assert user_rules.strip_sentiment(said) == said


def test_a_fear_is_not_stated_as_a_fact():
    assert "won't" in user_rules.strip_sentiment(
        "I'm worried that I won't sell 12 tickets in Porto by May 2"
    )
    assert user_rules.strip_sentiment("I'm worried that I won't sell 12 tickets").startswith(
        "I'm worried"
    )


def test_a_next_step_is_not_kept_but_a_planned_payment_is():
    assert contents(("user", "I'll talk to Ines about the 40 tickets before May 2.")) == []
    paid = "I'll raise my monthly savings to $300 until the move."
    assert contents(("user", paid)) == [paid]


def test_a_plan_for_a_date_is_kept():
    said = "I'm aiming to finish the draft by May 2"
    assert user_rules.strip_sentiment(said) == said


@pytest.mark.parametrize(
    "said",
    [
        "I've also tried a proxy to load the page",
        "I learned a lot from the April 5 talk about bees",
        "I've been playing for about four months now",
        "I did this climb with my dad when I was ten",
        "I took this pic in Porto on May 3",
        "I've been working on it for two years now",
        "I've got a festival coming up on August 22",
        "We're currently at 96%, and 98% seems far",
        "I feel like I've made good progress since May 2",
        "I won't make the new April 25 deadline",
    ],
)
def test_a_sentence_that_refers_back_or_has_no_object_is_unclear(said):
    assert user_rules.is_unclear(said)


@pytest.mark.parametrize(
    "said",
    [
        "I've also finished 12 tests with 95% passing",
        "I'm hooked on this great game called Tetris",
        "I attended a workshop on June 2 about beekeeping",
        "I've never done this before",
        "I've made good progress on the roof since May 2",
    ],
)
def test_a_sentence_that_names_its_object_is_clear(said):
    assert not user_rules.is_unclear(said)


def test_an_announcement_is_joined_with_its_outcome():
    said = "Last Friday, I had a milestone moment at the pool. I swam 40 lengths without a rest!"
    assert contents(("Ana", said)) == [f"Ana (13 May 2026): {said}"]


def test_an_announcement_without_an_outcome_is_not_kept():
    assert contents(("Ana", "I had a great accomplishment this Tuesday! How are you?")) == []


def test_a_day_without_a_month_is_kept_with_the_date_of_the_message():
    said = "I met my teammates Rui and Leo in Porto on the 9th."
    assert contents(("Ana", said)) == [f"Ana (13 May 2026): {said}"]


def test_always_been_between_people_is_no_rule():
    assert contents(("Ana", "Always been fond of my small countries.")) == []

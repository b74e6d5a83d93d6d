"""Rules about what a user says; exercises and advertisements are no knowledge."""

from __future__ import annotations

import pytest

from lore.llm.offline import user_rules
from lore.llm.offline.sentence_rules import Finding
from tests.digest.conversations import message_text


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
def test_it_is_kept_by_its_kind_with_what_it_replaces(text: str, kind: str, corrects: str):
    (one,) = found(text)
    assert (one.text, one.kind, one.corrects) == (text, kind, corrects)


def test_rules_come_before_decisions_and_these_before_facts():
    (rule,) = found("Always answer in metric units when I ask.")
    (choice,) = found("We switched from hemp ropes to nylon in March.")
    (fact,) = found("My sister Ana moved to Lisbon on June 4.")
    assert rule.score > choice.score > fact.score
    assert rule.importance >= choice.importance > fact.importance


def test_who_has_a_name_is_named_and_only_what_they_say_of_themselves_is_kept():
    (one,) = found("I moved to Lisbon on June 4 with Ana.", voice="Mara")
    assert one.text == "Mara: I moved to Lisbon on June 4 with Ana."
    assert found("You moved to Lisbon on June 4 with Ana.", voice="Mara") == []


def test_a_day_that_is_not_named_gets_its_date():
    (one,) = found("I decided yesterday to use SQLite 3.39 for my data.")
    assert one.text.endswith("(said on 13 May 2026)")


def test_at_work_a_long_message_is_pasted():
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
def test_what_programs_put_between_marks_is_not_said(text: str):
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
def test_what_sets_an_exercise_or_praises_a_product_is_one(said):
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
def test_what_someone_learned_bought_or_rated_is_none(said):
    assert not user_rules.is_exercise(said)

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lore.memory import Memory
from lore.recall import presentation
from lore.records import NewMessage, Part
from tests.fakes import NOON
from tests.recall.talk import say

QUESTION = "which harbour wall did we decide on?"


def test_a_question_is_shown_with_its_answer(memory: Memory):
    asked, *_ = say(memory, "s", "Which harbour wall do we build?", "Granite, for the surge.")
    [hit] = memory.recall(QUESTION, limit=1).hits
    assert (hit.id, hit.answer) == (asked, "Granite, for the surge.")


def test_answer_is_last_assistant_message_before_next_user_message(memory: Memory):
    call = Part("tool_call", "{}", "Bash", "1")
    parts = (
        ("user", Part("text", "Which harbour wall do we build?")),
        ("assistant", Part("text", "Let me look.")),
        ("assistant", call),
        ("tool", Part("tool_result", "harbour wall: concrete", "Bash", "1")),
        ("assistant", Part("text", "Granite it is.")),
        ("user", Part("text", "thanks")),
        ("assistant", Part("text", "With pleasure.")),
    )
    memory.capture("s", [
        NewMessage(role, (part,), NOON + timedelta(seconds=place))  # type: ignore[arg-type]
        for place, (role, part) in enumerate(parts)
    ])  # fmt: skip
    asked = [hit for hit in memory.recall(QUESTION, limit=1) if hit.role == "user"]
    assert [hit.answer for hit in asked] == ["Granite it is."]


def test_the_answer_is_the_message_of_the_turn_that_fits_the_question(memory: Memory):
    texts = (
        ("user", "Which harbour wall do we build?"),
        ("assistant", "Let me look at the harbour wall that we decided to build."),
        ("assistant", "For the harbour it is a wall of granite, because of the surge."),
        ("assistant", "The notes are tidied up and committed, too."),
    )
    memory.capture("s", [
        NewMessage(role, (Part("text", text),), NOON + timedelta(seconds=place))  # type: ignore[arg-type]
        for place, (role, text) in enumerate(texts)
    ])  # fmt: skip
    with memory.database.read() as db:
        [hit] = [hit for hit in memory.recall(QUESTION, limit=9) if hit.role == "user"]
        found = presentation.with_reply(
            db, replace(hit, answer=""), ["harbour", "wall"], most_tokens=500, shown=()
        )
    assert found.answer.startswith("For the harbour it is a wall of granite")


def test_answer_that_is_also_a_hit_is_shown_once(memory: Memory):
    say(memory, "s", "Which harbour wall do we build?", "The harbour wall will be of granite.")
    hits = memory.recall(QUESTION, limit=2).hits
    assert len(hits) == 2
    assert [hit.answer for hit in hits] == ["", ""]


def test_statements_and_assistant_questions_have_no_answer(memory: Memory):
    say(memory, "s", "The harbour wall is of granite.", "Shall I order it?", "yes", "Ordered.")
    for hit in memory.recall("harbour wall granite order", limit=9):
        assert hit.answer == ""


def test_answer_counts_towards_the_budget_and_is_omitted_if_too_long(memory: Memory):
    say(memory, "s", "Which harbour wall do we build?", "Granite. " * 60)
    [whole] = memory.recall(QUESTION, limit=1).hits
    assert "Granite" in whole.answer
    alone = whole.tokens - 100
    [cut] = memory.recall(QUESTION, limit=1, budget_tokens=max(alone, 12)).hits
    assert cut.answer == ""
    assert cut.tokens < whole.tokens
    assert memory.recall(QUESTION, limit=1).tokens == whole.tokens


def test_answers_change_neither_order_nor_number_of_hits(memory: Memory):
    for place in range(12):
        say(memory, f"s{place}", f"Which harbour wall {place}?", f"Granite of {place}.")
    wide = memory.recall(QUESTION, limit=12, budget_tokens=100_000).hits
    assert [hit.score for hit in wide] == sorted((hit.score for hit in wide), reverse=True)
    assert len(wide) == 12


def test_untrusted_answer_is_not_shown_with_a_trusted_question(memory: Memory):
    asked = NewMessage("user", (Part("text", "Which harbour wall do we build?"),), NOON)
    quoted = (Part("text", "The page says:"), Part("text", "always concrete", origin="web"))
    answer = NewMessage("assistant", quoted, NOON + timedelta(seconds=1))
    memory.capture("s", [asked, answer])
    for trusted_only in (True, False):
        hits = memory.recall(QUESTION, limit=1, trusted_only=trusted_only).hits
        assert [hit.answer for hit in hits if hit.role == "user"] == [""]

from __future__ import annotations

from datetime import timedelta

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.store.sqlite import SqliteConnection
from tests.fakes import NOON
from tests.recall.talk import say

QUESTION = "which harbour wall did we decide on?"


def test_a_question_is_shown_as_its_answer(memory: Memory):
    asked, answer, *_ = say(memory, "s", "Which harbour wall do we build?", "Granite, for surge.")
    [hit] = memory.recall(QUESTION, limit=1).hits
    assert (hit.id, hit.text, hit.role) == (answer, "Granite, for surge.", "assistant")
    assert (hit.question_id, hit.question) == (asked, "Which harbour wall do we build?")


def test_answer_is_last_assistant_message_before_next_user_message(memory: Memory):
    call = Part("tool_call", "{}", "Bash", "1")
    parts = (
        ("user", Part("text", "Which harbour wall do we build?")),
        ("assistant", Part("text", "Let me look.")),
        ("assistant", call),
        ("tool", Part("tool_result", "concrete and steel", "Bash", "1")),
        ("assistant", Part("text", "Granite it is.")),
        ("user", Part("text", "thanks")),
        ("assistant", Part("text", "With pleasure.")),
    )
    memory.capture("s", [
        NewMessage(role, (part,), NOON + timedelta(seconds=place))  # type: ignore[arg-type]
        for place, (role, part) in enumerate(parts)
    ])  # fmt: skip
    assert [hit.text for hit in memory.recall(QUESTION, limit=1)] == ["Granite it is."]


def test_the_answer_is_the_message_of_the_turn_that_fits_the_question(memory: Memory):
    texts = (
        ("user", "Which harbour wall do we build?"),
        ("assistant", "Let me look."),
        ("assistant", "It is a wall of granite for the harbour, because of the surge."),
        ("assistant", "The notes are tidied up and committed, too."),
    )
    memory.capture("s", [
        NewMessage(role, (Part("text", text),), NOON + timedelta(seconds=place))  # type: ignore[arg-type]
        for place, (role, text) in enumerate(texts)
    ])  # fmt: skip
    first = memory.recall(QUESTION, limit=9).hits[0]
    assert first.text.startswith("It is a wall of granite")


def test_answer_that_is_also_a_hit_is_shown_once(memory: Memory):
    _, answer = say(memory, "s", "Which harbour wall do we build?", "A harbour wall of granite.")
    hits = memory.recall(QUESTION, limit=5).hits
    assert [hit.id for hit in hits] == [answer]


def test_a_question_without_an_answer_is_not_shown(memory: Memory):
    (asked,) = say(memory, "s", "Which harbour wall do we build?")
    assert memory.recall(QUESTION).hits == ()
    (fate,) = memory.recall(QUESTION, why_not=(asked,)).fates
    assert "not answered" in fate.verdict


def test_what_people_ask_each_other_is_shown_itself(memory: Memory):
    text = "I saw the harbour wall, did you see it?"
    memory.capture("s", [NewMessage("user", (Part("text", text),), NOON, speaker="Ada")])
    assert [hit.text for hit in memory.recall("harbour wall", limit=1)] == [text]


def test_statements_and_assistant_questions_are_shown_themselves(memory: Memory):
    say(memory, "s", "The harbour wall is of granite.", "Shall I order it?", "yes", "Ordered.")
    for hit in memory.recall("harbour wall granite order", limit=9):
        assert hit.question == ""


def test_a_long_message_is_shown_by_the_passage_that_answers(memory: Memory):
    filler = "We looked at the budget of the town and its many other plans for the year. "
    text = filler * 40 + "The harbour wall is built of granite, for the surge. " + filler * 40
    memory.capture("s", [NewMessage("assistant", (Part("text", text),), NOON)])
    memory.maintenance.embed_waiting()
    [hit] = memory.recall("what is the harbour wall built of?", limit=1).hits
    assert "granite, for the surge" in hit.text
    assert len(hit.text) < 1_200
    assert hit.text.startswith("…")
    assert hit.text.endswith("…")


def test_answers_change_neither_order_nor_number_of_hits(memory: Memory):
    for place in range(12):
        say(memory, f"s{place}", f"Which harbour wall {place}?", f"Granite of {place}.")
    wide = memory.recall(QUESTION, limit=12, budget_tokens=100_000).hits
    assert [hit.score for hit in wide] == sorted((hit.score for hit in wide), reverse=True)
    assert len(wide) == 12


def test_untrusted_answer_is_not_shown_in_place_of_a_trusted_question(memory: Memory):
    asked = NewMessage("user", (Part("text", "Which harbour wall do we build?"),), NOON)
    quoted = (Part("text", "The page says:"), Part("text", "always concrete", origin="web"))
    answer = NewMessage("assistant", quoted, NOON + timedelta(seconds=1))
    memory.capture("s", [asked, answer])
    hits = memory.recall(QUESTION, trusted_only=True).hits
    assert not any("concrete" in hit.text for hit in hits)


def test_words_in_a_tool_call_are_shown(memory: Memory):
    call = Part(
        "tool_call", "x = 1\n" * 400 + "harbour_retention = 30 days\n" + "y = 2\n" * 400, "Write"
    )
    parts = (Part("text", "Now I write the config:"), call)
    memory.capture("s", [NewMessage("assistant", parts, NOON)])
    memory.maintenance.embed_waiting()
    [hit] = memory.recall("harbour_retention", limit=1).hits
    assert "harbour_retention = 30 days" in hit.text


def count_statements(memory: Memory, limit: int) -> int:
    """Return how many statements a recall runs."""
    statements: list[str] = []

    def trace(_cursor: object, sql: str, _values: object) -> bool:
        statements.append(sql)
        return True

    with memory.database.read() as db:
        assert isinstance(db, SqliteConnection)
        db.raw.exec_trace = trace
        hits = memory.recall("harbour", limit=limit, log=False).hits
        db.raw.exec_trace = None
    assert len(hits) == limit
    return len(statements)


@pytest.mark.only_sqlite("traces of statements")
def test_more_hits_take_no_more_statements(memory: Memory):
    say(memory, "s", *(f"The harbour has wall {i}, made of {i * 7} stones." for i in range(12)))
    memory.recall("harbour")
    assert count_statements(memory, 10) <= count_statements(memory, 3)

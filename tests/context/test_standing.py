"""Standing: what still holds of what is left out, and that it is counted."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lore.context.layers import Room
from lore.context.planning import Terms, plan
from lore.context.sizing import Measure
from lore.context.standing import MOST_CHARS, Standing
from lore.gateway.apis import anthropic
from lore.gateway.apis.wire import Texts
from lore.records.dialogues import Dialogue, Distilled, Pins
from tests.context.playing import Below
from tests.context.talks import entry, plain_turn, reminder, talks, text

RULES = "# AGENTS.md instructions for /code/almanac\nDates are day first."


def told(entries, start):
    return [one.block.text for one in Standing(entries).before(start)]


def test_what_a_project_says_before_the_first_answer_holds_for_good():
    entries = [entry("user", text(RULES), reminder(), text("hello")), *plain_turn(1)]
    assert told(entries, 3) == [RULES, reminder().text]
    assert told(entries, 0) == []


def test_of_what_a_program_says_later_the_newest_holds():
    first = [entry("system", text("agents")), *plain_turn(1)]
    later = [entry("system", text(f"note {n}")) for n in range(9)]
    assert told([*first, *later, *plain_turn(2)], len(first) + 9) == ["agents", "note 8"]
    assert told([*first, *later, *plain_turn(2)], len(first) + 4) == ["agents", "note 3"]


def test_what_is_said_twice_stands_once():
    entries = [entry("system", text("agents")), *plain_turn(1), entry("system", text("agents"))]
    assert told(entries, len(entries)) == ["agents"]


def test_no_more_stands_than_a_prompt_can_bear():
    entries = [entry("system", text("a" * MOST_CHARS)), entry("system", text("short"))]
    assert told(entries, 2) == ["a" * MOST_CHARS]


@settings(max_examples=60)
@given(entries=talks(), start=st.integers(0, 30))
def test_what_stands_was_said_before_the_window(entries, start):
    stands = Standing(entries).before(start)
    assert all(one.entry < start for one in stands)
    assert all(one.block in entries[one.entry].blocks for one in stands)


def test_reminders_of_many_turns_do_not_pile_up_and_a_plan_counts_what_is_sent():
    messages: list[object] = []
    for n in range(200):
        note = f"<system-reminder>note {n}: {'file changed ' * 80}</system-reminder>"
        messages += [
            {"role": "user", "content": f"question {n} {'w ' * 200}"},
            {"role": "system", "content": note},
            {"role": "assistant", "content": f"answer {'v ' * 600}"},
        ]
    messages.append({"role": "user", "content": "last"})
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
    request = anthropic.read(body)
    log = Distilled("s", "log " * 100, 100, len(messages) - 1)
    terms = Terms(Room(200_000, keep_tokens=10_000), Measure(0.25), Below(1.0))
    made = plan(request.dialogue, Pins(), [log], terms)
    sent = len(anthropic.rewrite(request, made, Texts())) / 4
    assert made.start > 500
    assert made.tokens <= sent <= 1.1 * made.tokens


def test_what_stands_takes_the_room_of_a_window():
    rules = "<system-reminder>" + "rule " * 1_000 + "</system-reminder>"
    entries = [entry("user", text(rules), text("hello"))]
    entries += [one for n in range(40) for one in plain_turn(n, chars=300)]
    log = Distilled("s", "log", 10, len(entries) - 4)
    terms = Terms(Room(9_000, keep_tokens=2_000), Measure(0.25), Below(1.0))
    made = plan(Dialogue("m", tuple(entries)), Pins(), [log], terms)
    assert made.start
    assert len(rules) / 4 < made.tokens <= 2_100

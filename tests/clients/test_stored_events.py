"""Messages of Lore are read as the events that they keep."""

from __future__ import annotations

from datetime import UTC, datetime

from lore.records import NewMessage, Part
from tests.clients.conversation import Conversation, Event
from tests.clients.project import CANARY
from tests.clients.stored_events import by_people, read_events

AT = datetime(2026, 11, 15, tzinfo=UTC)


def test_parts_are_read_by_their_kind_and_asides_are_left_out():
    messages = [
        NewMessage("user", (Part("aside", "boot file"), Part("text", "look up")), AT),
        NewMessage("assistant", (Part("reasoning", "Up."), Part("text", "Looking.")), AT),
        NewMessage("assistant", (Part("tool_call", '{"at":"sky"}', "look", "c1"),), AT),
        NewMessage("tool", (Part("tool_result", "stars", "look", "c1", failed=True),), AT),
    ]
    assert read_events(messages) == [
        Event("prompt", "look up"),
        Event("thinking", "Up."),
        Event("text", "Looking."),
        Event("call", call_id="c1", name="look", input={"at": "sky"}),
        Event("result", "stars", call_id="c1", failed=True),
    ]


def test_the_mark_of_a_secret_stands_for_the_canary():
    (event,) = read_events([NewMessage("user", (Part("text", "key [secret:aws:1f2e]."),), AT)])
    assert event.text == f"key {CANARY}."


def test_a_prompt_of_a_program_is_left_out_except_in_a_subagent():
    events = [Event("prompt", "go on", "agent"), Event("prompt", "look up", "person")]
    assert by_people(Conversation("s", events=events)).texts("prompt") == ["look up"]
    assert by_people(Conversation("s", "a", events)).texts("prompt") == ["go on", "look up"]

from __future__ import annotations

from lore.distill import saying
from lore.records import Message, Part, Role
from tests.fakes import NOON


def message(*parts: Part, role: Role = "user", ordinal: int = 0) -> Message:
    origin = {"user": "user", "assistant": "assistant"}.get(role, "tool")
    return Message("m", "s", ordinal, role, parts, 1, NOON, origin)  # type: ignore[arg-type]


def read(*messages: Message) -> list[str]:
    return [one.text for one in saying.said_of(messages, most_tokens=1_000)]


def test_asides_reasoning_and_opaque_parts_are_left_out():
    parts = [
        Part("aside", "remember the milk"),
        Part("reasoning", "hm"),
        Part("opaque", "{}"),
        Part("text", "The berth is free"),
    ]
    assert read(message(*parts)) == ["The berth is free"]


def test_a_call_is_told_by_its_command_and_a_short_result_stands_whole():
    call = Part("tool_call", '{"command": "uv run pytest -q"}', name="Bash", call_id="1")
    result = Part("tool_result", "3 passed", call_id="1")
    assert read(message(call, role="assistant"), message(result, role="tool")) == [
        "[Bash] uv run pytest -q",
        "[result] 3 passed",
    ]


def test_a_long_result_becomes_a_note_of_its_tool_lines_errors_and_paths():
    output = "ok\n" * 2_000 + "src/lore/clock.py:12: error: no such name\n" + "ok\n" * 10
    call = Part("tool_call", '{"command": "mypy"}', name="Bash", call_id="1")
    result = Part("tool_result", output, call_id="1")
    (_, note) = read(message(call, role="assistant"), message(result, role="tool"))
    assert note.startswith("[result] Bash: 2011 lines; errors: src/lore/clock.py:12: error")
    assert "paths: src/lore/clock.py" in note
    assert len(note) < 300


def test_no_message_is_longer_than_a_segment():
    (one,) = saying.said_of([message(Part("text", "word " * 5_000))], most_tokens=100)
    assert one.tokens <= 100


def test_the_origin_is_the_lowest_of_those_who_speak():
    (one,) = saying.said_of(
        [message(Part("text", "see"), Part("text", "page", origin="web"))], most_tokens=100
    )
    assert one.origin == "web"

"""Messages rendered for a summarizer."""

from __future__ import annotations

import pytest

from lore.records import Message, Part, Role
from lore.text import transcript_text
from lore.text.transcript_text import FOR_KNOWLEDGE, FOR_LOG, LONG_OUTPUT_CHARS, RenderOptions
from tests.fakes import NOON

MANNERS = pytest.mark.parametrize("manner", [FOR_LOG, FOR_KNOWLEDGE], ids=["log", "knowledge"])


def message(*parts: Part, role: Role = "user", ordinal: int = 0) -> Message:
    origin = {"user": "user", "assistant": "assistant"}.get(role, "tool")
    return Message("m", "s", ordinal, role, parts, 1, NOON, origin)  # type: ignore[arg-type]


def read(*messages: Message, manner: RenderOptions = FOR_LOG) -> list[str]:
    return [
        one.text for one in transcript_text.render_messages(messages, manner, most_tokens=1_000)
    ]


@MANNERS
def test_injected_text_reasoning_and_opaque_parts_are_left_out(manner: RenderOptions):
    parts = [
        Part("aside", "remember the milk"),
        Part("reasoning", "hm"),
        Part("opaque", "{}"),
        Part("text", "The berth is free"),
    ]
    assert read(message(*parts), manner=manner) == ["The berth is free"]


@MANNERS
def test_a_message_of_injected_text_alone_has_no_text(manner: RenderOptions):
    assert read(message(Part("aside", "boot")), manner=manner) == [""]


def test_an_attachment_is_in_the_log_but_not_in_the_knowledge_input():
    said = message(Part("text", "See"), Part("document", "Tariffs of 1998"))
    assert read(said, manner=FOR_LOG) == ["See\nTariffs of 1998"]
    assert read(said, manner=FOR_KNOWLEDGE) == ["See"]


def test_a_call_is_rendered_as_its_command_and_a_short_result_whole():
    call = Part("tool_call", '{"command": "uv run pytest -q"}', name="Bash", call_id="1")
    result = Part("tool_result", "3 passed", call_id="1")
    said = (message(call, role="assistant"), message(result, role="tool"))
    assert read(*said) == ["[Bash] uv run pytest -q", "[result] 3 passed"]
    assert read(*said, manner=FOR_KNOWLEDGE) == ["[Bash] uv run pytest -q", "3 passed"]


@MANNERS
def test_a_call_is_one_line_with_the_tool_in_brackets(manner: RenderOptions):
    call = Part("tool_call", '{"command": "just test\\njust lint"}', name="Bash")
    assert read(message(call), manner=manner) == ["[Bash] just test just lint"]


def test_a_file_that_mentions_errors_has_none_unless_the_call_failed():
    listing = "".join(f"{n:>5}→    throw new Error('line {n} failed')\n" for n in range(400))
    prose = "The call failed with an error: denied.\n" * 200
    call = Part("tool_call", '{"file_path": "src/a.ts"}', name="Read", call_id="1")
    for shown in (listing, prose):
        (_, note) = read(message(call), message(Part("tool_result", shown, call_id="1")))
        assert note.startswith("[result] Read: ")
        assert "errors:" not in note
    wrong = Part("tool_result", f"File does not exist.\n{prose}", call_id="1", failed=True)
    (_, note) = read(message(call), message(wrong))
    assert "; errors: " in note


def test_the_errors_of_a_command_are_messages_and_not_the_code_that_it_prints():
    output = "".join(f"if err != nil {{ return fmt.Errorf({n}) }}\n" for n in range(400))
    call = Part("tool_call", '{"command": "go build ./..."}', name="Bash", call_id="1")
    result = Part("tool_result", f"{output}list/data.go:685:2: undefined: repo\n", call_id="1")
    (_, note) = read(message(call), message(result))
    assert "errors: list/data.go:685:2: undefined: repo" in note
    assert "Errorf" not in note


def test_a_long_result_becomes_a_note_of_its_tool_lines_errors_and_paths():
    output = "ok\n" * 2_000 + "src/lore/clock.py:12: error: no such name\n" + "ok\n" * 10
    call = Part("tool_call", '{"command": "mypy"}', name="Bash", call_id="1")
    result = Part("tool_result", output, call_id="1")
    (_, note) = read(message(call, role="assistant"), message(result, role="tool"))
    assert note.startswith("[result] Bash: 2011 lines; errors: src/lore/clock.py:12: error")
    assert "paths: src/lore/clock.py" in note
    assert len(note) < 300


def test_the_ends_of_a_long_output_are_rendered_for_knowledge():
    text = "a" * LONG_OUTPUT_CHARS + "b" * LONG_OUTPUT_CHARS + "c" * LONG_OUTPUT_CHARS
    result = message(Part("tool_result", text), role="tool")
    (one,) = transcript_text.render_messages([result], FOR_KNOWLEDGE)
    assert one.text.startswith("a")
    assert one.text.endswith("c")
    assert "b" not in one.text


@MANNERS
def test_no_message_is_longer_than_a_segment(manner: RenderOptions):
    (one,) = transcript_text.render_messages(
        [message(Part("text", "word " * 5_000))], manner, most_tokens=100
    )
    assert one.tokens <= 100


@MANNERS
def test_the_origin_is_the_least_trusted_one(manner: RenderOptions):
    quoting = message(Part("text", "see"), Part("text", "page", origin="web"))
    showing = message(Part("text", "see"), Part("tool_result", "x"))
    origins = [one.origin for one in transcript_text.render_messages([quoting, showing], manner)]
    assert origins == ["web", "tool"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("</span> &lt;/div&gt; \\u003c/h3\\u003e", ""),
        ("String.trim/1 and render/1", ""),
        ("enable/setup, it writes/hook, 2026/05/04", ""),
        ("src/app.py lib/web/live", "src/app.py, lib/web/live"),
        (
            "/etc/hosts ./run ../up ~/notes /projects",
            "/etc/hosts, ./run, ../up, ~/notes, /projects",
        ),
        ("in `bin/lore`, by app/.env", "bin/lore, app/.env"),
    ],
)
def test_only_paths_are_listed_as_paths_of_a_long_result(text, paths):
    note = transcript_text.summarize_output(text, "Read")
    assert note == "[result] Read: 1 lines" + (f"; paths: {paths}" if paths else "")

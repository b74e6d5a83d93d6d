"""Rollouts of Codex, line by line."""

import pytest

from lore.capture.adapter_protocol import Context
from lore.capture.adapters import codex
from tests.capture.adapters.samples import (
    CODEX,
    SESSION,
    TIME,
    codex_item,
    codex_line,
    shapes,
    told,
)


def asked(text):
    content = [{"type": "input_text", "text": text}]
    (message,), _ = told(codex, [codex_item("message", role="user", content=content)])
    return message


def answered(output, **more):
    lines = [
        codex_item("function_call", name="shell", arguments="{}", call_id="c"),
        codex_item("function_call_output", call_id="c", output=output, **more),
    ]
    return told(codex, lines)[0][1]


def test_rollout_yields_its_messages_in_order():
    messages, context = told(codex, CODEX)
    assert shapes(messages) == [
        ("user", [("text", "Count.")]),
        ("assistant", [("reasoning", "Grep.")]),
        ("assistant", [("tool_call", '{"command":["ls"]}')]),
        ("tool", [("tool_result", "a")]),
        ("assistant", [("tool_call", "*** Add File: a.py")]),
        ("tool", [("tool_result", "Exit code: 1\nOutput:\n")]),
        ("assistant", [("tool_call", '{"type":"search","query":"dates"}')]),
        ("assistant", [("text", "One.")]),
        ("system", [("aside", "So far.")]),
    ]
    assert (context.session, context.parent) == (SESSION, "p")
    assert (context.folder, context.branch, context.version) == (
        "/code/almanac",
        "trunk",
        "0.166.0",
    )
    assert (context.title, context.files) == ("Counting", ("a.py",))
    assert {message.model for message in messages if message.role == "assistant"} == {"gpt-5.5"}
    assert len({message.key for message in messages}) == len(messages)


def test_the_prompt_of_a_subagent_is_its_parents():
    messages, _ = told(codex, CODEX)
    assert (messages[0].origin, messages[0].speaker) == ("assistant", "agent")


def test_the_head_of_what_a_fork_copied_does_not_change_its_session():
    lines = [
        codex_line("session_meta", id="fork", forked_from_id="first"),
        codex_line("session_meta", id="first"),
        codex_item("message", role="user", content=[{"type": "input_text", "text": "Hi"}]),
    ]
    (message,), context = told(codex, lines)
    assert (context.session, context.parent, message.speaker) == ("fork", "first", "")


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/code</cwd>\n</environment_context>",
        "<user_instructions>\nbe brief\n</user_instructions>",
        "# AGENTS.md instructions for /code\n\n<INSTRUCTIONS>\nbe brief\n</INSTRUCTIONS>",
        "<turn_aborted>\nstopped\n</turn_aborted>",
        "Another language model started to solve this problem and produced a summary",
    ],
)
def test_text_injected_by_codex_becomes_an_injected_part(text):
    message = asked(text)
    assert (message.role, message.parts[0].kind) == ("system", "aside")


def test_developer_message_becomes_an_injected_part():
    line = codex_item(
        "message", role="developer", content=[{"type": "input_text", "text": "Obey."}]
    )
    (message,), _ = told(codex, [line])
    assert shapes([message]) == [("system", [("aside", "Obey.")])]


@pytest.mark.parametrize(
    ("output", "text", "failed"),
    [
        ("fine", "fine", False),
        ('{"output":"no","metadata":{"exit_code":2}}', "no", True),
        ('{"output":"yes","metadata":{"exit_code":0}}', "yes", False),
        ({"content": "no", "success": False}, "no", True),
        ("Exit code: 0\nOutput:\n", "Exit code: 0\nOutput:\n", False),
        ("Process exited with code 127\n", "Process exited with code 127\n", True),
        ("apply_patch verification failed: x", "apply_patch verification failed: x", True),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", False),
        (None, "", False),
    ],
)
def test_results_are_unwrapped_and_failures_seen(output, text, failed):
    part = answered(output).parts[0]
    assert (part.text, part.failed, part.name) == (text, failed, "shell")


def test_an_image_in_a_result_is_a_reference():
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    assert [(p.kind, p.text) for p in answered([image]).parts] == [
        ("tool_result", ""),
        ("image", "[image/png]"),
    ]


def test_encrypted_reasoning_and_events_yield_no_messages():
    lines = [
        codex_item("reasoning", summary=[], encrypted_content="gAAAA"),
        codex_line("event_msg", type="user_message", message="Count."),
        codex_item("ghost_snapshot", ghost_commit={}),
        codex_line("token_usage_record", usage={}),
    ]
    assert told(codex, lines)[0] == []


def test_an_answer_that_no_event_announced_is_the_summary_of_a_compaction():
    def answer(id):
        content = [{"type": "output_text", "text": id}]
        return codex_item("message", id=id, role="assistant", content=content)

    def announced(id):
        return codex_line(
            "event_msg", type="item_completed", item={"type": "AgentMessage", "id": id}
        )

    lines = [announced("a"), answer("a"), answer("b"), announced("c"), answer("c")]
    assert [message.role for message in told(codex, lines)[0]] == [
        "assistant",
        "system",
        "assistant",
    ]
    later = [answer("a"), announced("a"), answer("b"), announced("b")]
    assert [message.role for message in told(codex, later)[0]] == ["assistant", "assistant"]


def test_old_rollouts_have_items_as_lines():
    lines = [
        {"id": SESSION, "timestamp": TIME, "instructions": "x", "git": {"branch": "trunk"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "yes"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "yes"}]},
    ]
    messages, context = told(codex, lines)
    assert [message.parts[0].text for message in messages] == ["yes", "yes"]
    assert messages[0].key != messages[1].key
    assert (context.session, context.branch) == (SESSION, "trunk")


def test_an_item_that_is_not_known_is_kept_as_opaque_and_a_line_is_counted():
    (message,), _ = told(codex, [codex_item("novelty", shape=3)])
    assert message.parts[0].kind == "opaque"
    assert codex.parse_line({"type": "novelty", "payload": {}}, Context()).unknown == "novelty"
    assert codex.parse_line({"kind": "app_event"}, Context()).unknown == "no type"


def test_the_name_of_a_file_ends_with_the_id_of_its_session(tmp_path):
    path = tmp_path / f"rollout-2026-05-04T10-00-00-{SESSION}.jsonl"
    assert codex.initial_context(path).session == SESSION

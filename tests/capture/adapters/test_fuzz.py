"""Whatever a transcript holds, no adapter fails, and what it tells can be stored."""

import copy
import json
from dataclasses import asdict

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.capture.adapter_protocol import Context
from lore.capture.adapters import (
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    generic,
    opencode,
    sweagent,
)
from lore.capture.message_capture import prepare
from lore.records import NewMessage
from tests.capture.adapters.samples import (
    CHATGPT,
    CLAUDE,
    CLAUDE_AI,
    CODEX,
    GENERIC,
    OPENCODE,
    TRAJECTORY,
    shared,
    shared_lines,
)

LINES = (claude_code, codex, generic)
BIGGEST = 20_000
"""Longer lines make a run slow without making it stranger."""


def seeds():
    found = [*CLAUDE, *CODEX, *GENERIC]
    for path in shared("*.jsonl.gz")[1:]:
        lines = [line for line in shared_lines(path) if len(line) < BIGGEST]
        found += [orjson.loads(line) for line in lines[:: max(1, len(lines) // 15)]]
    return found


SEEDS = seeds()
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from([
        "", " ", "12", "tool_result", "tool_use", "text", "user", "assistant", "2026-13-45T99:99",
        "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", 1e308, 10**30, -1,
        10**400, -(10**400), 1 << 53, 1 << 64, "9" * 5000, "x y", "x", "x\ny", "1e999", "\u00b2",
        "\x00", "\ud800", [], {}, [[]], [None], {"type": None}, {"text": 3}, {"kind": ["x"]},
        [{"type": "text"}],
        "<system-reminder>", "</lore-memory>", "<lore-memory>" * 50, "A" * 3000,
    ]),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "x"]), inner, max_size=3),
        max_leaves=6,
    ),
)  # fmt: skip


def places(value, path=()):
    """Return the paths to everything in a document."""
    found = [path] if path else []
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, each in inner:
        found += places(each, (*path, name))
    return found


@st.composite
def mutated(draw, samples):
    """Return a sample of which some fields were dropped, replaced or put into one another."""
    document = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        paths = places(document)
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        holder = document
        for name in path[:-1]:
            holder = holder[name]
        change = draw(st.sampled_from(["drop", "junk", "wrap", "text"]))
        if change == "drop":
            del holder[path[-1]]
        elif change == "junk":
            holder[path[-1]] = copy.deepcopy(draw(JUNK))
        elif change == "wrap":
            holder[path[-1]] = [holder[path[-1]]]
        else:
            holder[path[-1]] = str(holder[path[-1]])[:2000]
    return document


def check(messages, context):
    for message in messages:
        assert isinstance(message, NewMessage)
        assert message.key
        assert message.parts
        assert message.created_at.tzinfo is not None
        for part in message.parts:
            assert {type(part.text), type(part.name), type(part.call_id)} == {str}
        prepare(message)
    assert context.session.strip()
    json.dumps(asdict(context))
    assert all(isinstance(value, str) for value in context.state.values())


@pytest.mark.parametrize("adapter", LINES, ids=lambda each: each.agent)
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(mutated(SEEDS) | JUNK, min_size=1, max_size=4))
def test_no_line_makes_an_adapter_fail(adapter, lines):
    context = Context(session="s")
    for line in lines:
        answer = adapter.parse_line(line, context)
        context = answer.context
        check(answer.messages, context)


ODD_IDS = st.sampled_from(["x", "x y", "x y z", "", " ", "\n", 5, 10**400, None, ["x"], "x {}"])
ODD_COUNTS = st.dictionaries(
    st.sampled_from(["input_tokens", "output tokens", "", "{"]),
    st.sampled_from([0, 1, 7, -1, 10**400, 1.5, "1", None, {"a b": 2}]),
)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(told=st.lists(st.tuples(ODD_IDS, ODD_IDS, ODD_COUNTS), min_size=2, max_size=6))
def test_no_id_and_no_count_makes_claude_code_fail(told):
    context = Context(session="s")
    for uuid, own, usage in told:
        message = {"id": own, "usage": usage, "content": "words"}
        line = {"type": "assistant", "uuid": uuid, "sessionId": uuid, "message": message}
        answer = claude_code.parse_line(line, context)
        context = answer.context
        check(answer.messages, context)


@pytest.mark.parametrize("adapter", LINES, ids=lambda each: each.agent)
@pytest.mark.parametrize(
    "line", [CLAUDE[4], CODEX[4], GENERIC[1]], ids=["claude", "codex", "generic"]
)
def test_a_line_that_was_cut_and_still_parses_does_no_harm(adapter, line):
    raw = orjson.dumps(line)
    for end in range(1, len(raw)):
        for closed in (raw[:end], raw[:end] + b"}", raw[:end] + b'"}', raw[:end] + b"}}"):
            try:
                parsed = orjson.loads(closed)
            except orjson.JSONDecodeError:
                continue
            check(*_told(adapter, parsed))


def _told(adapter, line):
    answer = adapter.parse_line(line, Context(session="s"))
    return answer.messages, answer.context


@pytest.mark.parametrize("adapter", LINES, ids=lambda each: each.agent)
def test_nesting_bombs_do_no_harm(adapter):
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    for line in (
        {"type": "user", "message": {"content": deep}, "role": "user", "content": deep},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": deep}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": deep}]}},
        {"type": "attachment", "attachment": {"content": deep}},
        {"type": "response_item", "payload": {"type": "function_call", "arguments": deep}},
        {"role": "assistant", "content": deep, "tool_calls": deep},
    ):
        check(*_told(adapter, line))


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(document=st.one_of(*(mutated([each]) for each in (CHATGPT, CLAUDE_AI, TRAJECTORY))))
def test_no_document_makes_an_adapter_fail(document, tmp_path_factory):
    path = tmp_path_factory.mktemp("exports") / "conversations.json"
    try:
        path.write_bytes(orjson.dumps([document], option=orjson.OPT_NON_STR_KEYS))
        path.with_suffix(".traj").write_bytes(orjson.dumps(document))
    except TypeError:
        return
    for adapter, source in (
        (chatgpt.adapter, path),
        (claude_ai.adapter, path),
        (sweagent, path.with_suffix(".traj")),
    ):
        for stretch in adapter.read(source, 0):
            check(stretch.messages, stretch.context)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    record=mutated([message for message, _ in OPENCODE]),
    parts=st.lists(mutated([part for _, parts in OPENCODE for part in parts]), max_size=4),
)
def test_no_opencode_record_makes_the_message_builder_fail(record, parts):
    teller = opencode.MessageBuilder(Context(session="s"))
    opencode.is_finished(record)
    teller.add("m", record, [(f"p{i}", part) for i, part in enumerate(parts)])
    check(teller.messages, teller.context)

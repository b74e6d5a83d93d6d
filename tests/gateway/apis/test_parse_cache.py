from __future__ import annotations

import json
from typing import Any

import pytest

from lore.errors import InvalidInput
from lore.gateway.apis import anthropic
from lore.gateway.apis.anthropic.requests import parse_document
from lore.gateway.apis.parse_cache import ParseCache, PrefixCache, clear_caches


def test_what_was_asked_for_least_lately_makes_room():
    held: ParseCache[int] = ParseCache(most_bytes=6)
    held.put(b"aa", 1)
    held.put(b"bb", 2)
    held.put(b"cc", 3)
    assert held.get(b"aa") == 1
    held.put(b"dd", 4)
    assert [held.get(raw) for raw in (b"aa", b"bb", b"cc", b"dd")] == [1, None, 3, 4]


def test_what_is_longer_than_all_the_room_is_not_kept():
    held: ParseCache[int] = ParseCache(most_bytes=3)
    held.put(b"aa", 1)
    held.put(b"bbbb", 2)
    assert held.get(b"bbbb") is None
    held.put(b"cc", 3)
    assert held.get(b"cc") == 3


def test_all_is_let_go_of_at_once():
    held: tuple[ParseCache[int], ParseCache[int]] = ParseCache(most_bytes=3), ParseCache()
    for one in held:
        one.put(b"aa", 1)
    known = anthropic.parse_request(body("Read")).dialogue.entries[0]
    assert anthropic.parse_request(body("Read")).dialogue.entries[0].blocks is known.blocks
    clear_caches()
    assert [one.get(b"aa") for one in held] == [None, None]
    assert anthropic.parse_request(body("Read")).dialogue.entries[0].blocks is not known.blocks
    held[0].put(b"bb", 2)
    held[0].put(b"c", 3)
    assert held[0].get(b"bb") == 2


def body(tool: str, **fields: Any) -> bytes:
    call = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {"path": "x"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ten lines"}
    document = {
        "model": "claude-test",
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: 1"},
            {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [
            {"role": "user", "content": "Read x."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}, "no table"],
        "stream": True,
        **fields,
    }
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"system": "You help."},
        {"system": None, "tools": []},
        {"tools": "none", "messages": []},
        {"system": [], "metadata": {"user_id": "é"}},
    ],
)
def test_a_request_says_the_same_whenever_it_is_read(fields: dict[str, Any]):
    written = body("Read", **fields)
    whole = parse_document(written, json.loads(written))
    for _ in range(2):
        read = anthropic.parse_request(written)
        assert read == whole
        assert list(read.document) == list(whole.document)


def test_a_result_that_is_known_is_of_the_tool_that_its_call_names_now():
    tools = [
        anthropic.parse_request(body(name)).dialogue.entries[2].blocks[0].tool for name in "ABA"
    ]
    assert tools == ["A", "B", "A"]


@pytest.mark.parametrize(
    "wrong", [b"", b"[]", b"{", b"{}", b'{"messages": 1}', b'{"messages": [1]}']
)
def test_what_has_another_shape_is_refused(wrong: bytes):
    with pytest.raises(InvalidInput):
        anthropic.parse_request(wrong)


def test_a_text_that_no_encoding_allows_is_refused():
    with pytest.raises(InvalidInput):
        anthropic.parse_request(b'{"messages": [{"role": "user", "content": "\xff"}]}')


def test_longest_prefix_is_found_until_it_is_replaced_evicted_or_cleared():
    held: PrefixCache[int] = PrefixCache(max_bytes=6)
    held.put(b"a", 1)
    held.put(b"abc", 2)
    assert held.find(b"abcd") == (b"abc", 2)
    assert held.find(b"abd") == (b"a", 1)
    held.put(b"abcd", 3, extends=b"abc")
    assert [held.find(raw) for raw in (b"abcd", b"abce")] == [(b"abcd", 3), (b"a", 1)]
    held.put(b"xy", 4)
    assert [held.find(raw) for raw in (b"ab", b"abcd", b"xyz")] == [
        None, (b"abcd", 3), (b"xy", 4),
    ]  # fmt: skip
    clear_caches()
    assert held.find(b"xyz") is None


def conversation(turns: int) -> list[Any]:
    """Return messages with calls and results; the last ones have breakpoints, as agents set."""
    messages: list[Any] = [{"role": "user", "content": "Read all files."}]
    for n in range(turns):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": f"Read{n % 2}", "input": {"n": n}}
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": f"toolu_{n}"}
        if n >= turns - 2:
            result["cache_control"] = {"type": "ephemeral"}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "So."}, call]})
        messages.append({"role": "user", "content": [result]})
    return messages


@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n ", ": ")])
@pytest.mark.parametrize("changed", ["nothing", "the end", "the middle"])
def test_a_growing_conversation_reads_as_if_it_came_at_once(
    separators: tuple[str, str], changed: str
):
    clear_caches()
    for turns in range(12):
        messages = conversation(turns)
        if changed == "the end":
            messages.append({"role": "system", "content": f"{turns} turns."})
        if changed == "the middle" and turns % 3 == 0:
            messages[turns] = {**messages[turns], "content": f"Turn {turns}."}
        document = {"model": "claude-test", "messages": messages}
        written = json.dumps(document, separators=separators).encode()
        assert anthropic.parse_request(written) == parse_document(written, document)
        assert anthropic.parse_request(written) == parse_document(written, document)


def test_messages_that_a_request_began_with_are_not_parsed_again():
    clear_caches()
    requests = [
        anthropic.parse_request(json.dumps({"messages": conversation(turns)}).encode())
        for turns in (6, 7)
    ]
    before, after = (one.document["messages"] for one in requests)
    assert all(one is two for one, two in zip(before[:9], after[:9], strict=True))

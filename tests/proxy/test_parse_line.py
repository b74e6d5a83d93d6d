from __future__ import annotations

import json

import pytest

from lore.proxy import stdio_proxy
from lore.proxy.stdio_proxy import InvalidMessage


@pytest.mark.parametrize("id_", ["1e999", "1.5", "null", "{}", "[1]", "true", "-1e999"])
def test_an_id_that_cannot_be_given_back_is_refused_without_one(id_):
    with pytest.raises(InvalidMessage) as refused:
        stdio_proxy.parse_line(f'{{"jsonrpc": "2.0", "id": {id_}, "method": "ping"}}'.encode())
    assert (refused.value.code, refused.value.id) == (-32600, None)


@pytest.mark.parametrize("id_", [0, -7, "", "a", 10**30])
def test_a_request_is_read_with_its_id(id_):
    message = {"jsonrpc": "2.0", "id": id_, "method": "ping"}
    assert stdio_proxy.parse_line(json.dumps(message).encode()) == message
    assert stdio_proxy.is_request(message)


def test_half_a_character_is_refused_to_the_request_that_has_it():
    asked = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"query": "\ud83d"}}
    with pytest.raises(InvalidMessage) as refused:
        stdio_proxy.parse_line(json.dumps(asked).encode())
    assert (refused.value.code, refused.value.id) == (-32700, 3)
    asked["params"] = {"query": "\U0001f600"}
    assert stdio_proxy.parse_line(json.dumps(asked).encode()) == asked


@pytest.mark.parametrize(
    ("line", "code", "id_"),
    [
        (b"\xff\xfe", -32700, None),
        (b"[]", -32600, None),
        (b"{}", -32600, None),
        (b'{"id": 4}', -32600, 4),
        (b'{"id": 4, "method": 5}', -32600, 4),
        (b'{"id": "\\ud800", "method": "ping"}', -32700, None),
    ],
)
def test_what_is_no_message_is_refused(line, code, id_):
    with pytest.raises(InvalidMessage) as refused:
        stdio_proxy.parse_line(line)
    assert (refused.value.code, refused.value.id) == (code, id_)
    answer = json.loads(stdio_proxy.error_response(id_, code, "no"))
    assert answer == {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": "no"}}


def test_replies_and_notifications_want_no_answer():
    for line in (b'{"id": 1, "result": {}}', b'{"id": 1, "error": {}}', b'{"method": "x"}'):
        assert not stdio_proxy.is_request(stdio_proxy.parse_line(line))

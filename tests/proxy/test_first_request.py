from __future__ import annotations

import json
import os
from typing import Any

from lore.proxy import stdio_proxy


def told(given: bytes, *, hang_up: bool = True) -> list[dict[str, Any]]:
    """Return what is answered to an agent that says this."""
    heard, said = os.pipe()
    read, out = os.pipe()
    os.write(said, given)
    if hang_up:
        os.close(said)
    stdio_proxy.answer_first_request("The home is broken.", heard, out, within_s=0.2)
    os.close(out)
    with os.fdopen(read, "rb") as file:
        return [json.loads(line) for line in file]


def test_the_first_request_is_answered_with_what_is_wrong():
    said = [
        b"",
        b'{"method": "x"}',
        b'{"id": 4, "method": "initialize"}',
        b'{"id": 5, "method": "y"}',
    ]
    [answer] = told(b"\n".join([*said, b""]), hang_up=False)
    assert answer["id"] == 4
    assert answer["error"] == {"code": -32603, "message": "The home is broken."}


def test_who_says_nothing_is_not_waited_for():
    assert told(b"", hang_up=False) == []
    assert told(b"") == []


def test_what_is_no_message_is_answered_too():
    assert [answer["error"]["code"] for answer in told(b'no json\n{"id": 1, "method": "x"}\n')] == [
        -32700,
        -32603,
    ]

"""Hook counters on a real server: each call is counted once."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.http.hooks import HookCounters
from lore.proxy.hook_client import HOOK_EVENTS, NOTIFICATION_EVENTS
from tests.http_api.daemon_server import Served, serving
from tests.http_api.test_hooks import PROMPT, remember
from tests.waiting import eventually


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as opened:
        yield opened


def test_a_hook_that_is_given_memory_is_answered_and_one_that_is_not_had_nothing(served: Served):
    served.post("/hooks/UserPromptSubmit", PROMPT)
    assert served.hooks == HookCounters(nothing=1)
    remember(served)
    served.post("/hooks/UserPromptSubmit", PROMPT)
    assert served.hooks == HookCounters(answered=1, nothing=1)


@pytest.mark.parametrize(
    "event", [event for event in HOOK_EVENTS if event not in NOTIFICATION_EVENTS]
)
def test_an_agent_that_waits_no_longer_is_too_late(served: Served, event: str):
    remember(served)
    served.post(f"/hooks/{event}", PROMPT, **{"x-lore-within-ms": "0"})
    assert served.hooks == HookCounters(late=1)


@pytest.mark.parametrize("event", NOTIFICATION_EVENTS)
def test_what_an_agent_tells_is_never_too_late(served: Served, event: str):
    served.post(f"/hooks/{event}", {"session_id": "s"}, **{"x-lore-within-ms": "0"})
    assert served.hooks == HookCounters(told=1)


def test_an_agent_that_hangs_up_is_too_late_whatever_it_said_before(served: Served):
    remember(served)
    host, port = served.url.removeprefix("http://").split(":")
    body = json.dumps(PROMPT).encode()
    head = (
        f"POST /api/v1/hooks/UserPromptSubmit HTTP/1.1\r\nhost: {host}\r\n"
        f"authorization: Bearer {served.key}\r\ncontent-type: application/json\r\n"
        f"x-lore-within-ms: 60000\r\ncontent-length: {len(body)}\r\n\r\n"
    )

    def hang_up() -> int:
        with socket.create_connection((host, int(port)), 30) as line:
            line.sendall(head.encode() + body)
        return served.hooks.late

    eventually(hang_up)


def test_what_is_refused_is_not_counted(served: Served):
    assert served.post("/hooks/Nonsense", PROMPT)[0] == 422
    assert served.hooks == HookCounters()

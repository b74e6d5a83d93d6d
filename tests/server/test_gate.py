"""Whatever becomes of a request behind the gate, its answer is a problem and nothing else."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.errors import StoreBusy
from lore.server.gate import Catching

SCOPE: Scope = {"type": "http", "path": "/api/v1/x", "method": "GET", "headers": []}


async def answer(app: ASGIApp, *heard: Message) -> tuple[list[Message], bool]:
    """Return what an app sends, and whether it was cancelled."""
    waiting, sent = list(heard), list[Message]()

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await Catching(app)(SCOPE, receive, send)
    except asyncio.CancelledError:
        return sent, True
    return sent, False


async def nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Answer nothing."""


async def leaves(_scope: Scope, receive: Receive, _send: Send) -> None:
    assert (await receive())["type"] == "http.disconnect"


async def cancelled(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise asyncio.CancelledError


async def fails(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise ValueError


async def is_busy(_scope: Scope, _receive: Receive, _send: Send) -> None:
    msg = "Others write."
    raise StoreBusy(msg)


@pytest.mark.parametrize(
    ("app", "status", "ends"),
    [(nothing, 500, False), (cancelled, 503, True), (fails, 500, False), (is_busy, 503, False)],
)
def test_every_end_of_a_request_is_told_as_a_problem(app: ASGIApp, status: int, ends: bool):
    sent, was_cancelled = anyio.run(answer, app)
    assert (sent[0]["status"], was_cancelled) == (status, ends)
    assert (b"content-type", b"application/problem+json") in sent[0]["headers"]
    assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]


def test_who_has_left_is_told_nothing():
    assert anyio.run(answer, leaves, {"type": "http.disconnect"}) == ([], False)

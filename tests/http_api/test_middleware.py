"""Who passes authentication, and how errors behind it are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.errors import NotFound, StoreBusy
from lore.http import middleware
from lore.http.middleware import ErrorMiddleware
from lore.records import AccessScope, Grant
from lore.tools.tool import GRANT

SCOPE: Scope = {"type": "http", "path": "/api/v1/x", "method": "GET", "headers": []}


async def answer(app: ASGIApp, *heard: Message) -> tuple[list[Message], bool]:
    """Return what an app sends, and whether it was cancelled."""
    waiting, sent = list(heard), list[Message]()

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await ErrorMiddleware(app)(SCOPE, receive, send)
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


def asked(*scopes: AccessScope) -> Scope:
    return {"type": "http", GRANT: Grant("someone", frozenset(scopes))}


def test_a_grant_opens_what_it_names_and_admin_opens_all():
    assert middleware.require_scope(asked("read", "write"), "read").name == "someone"
    assert middleware.require_scope(asked("admin"), "read", "push").name == "someone"
    with pytest.raises(HTTPException, match="it needs read and push"):
        middleware.require_scope(asked("read"), "read", "push")


def test_nothing_is_open_to_whom_the_gate_has_not_seen():
    with pytest.raises(HTTPException) as refused:
        middleware.require_scope({"type": "http"}, "read")
    assert refused.value.status_code == 403


def answers(app: ASGIApp) -> list[Message]:
    """Return what is sent for a request to an app behind `Catching`."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/x/y", "headers": []}
    asyncio.run(ErrorMiddleware(app)(scope, receive, send))
    return sent


def failing(error: Exception, *, after: int = 0) -> Callable[..., Any]:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        if after:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "status"),
    [(NotFound("x"), 404), (HTTPException(429, "x"), 429), (ValueError("private"), 500)],
)
def test_whatever_goes_wrong_is_answered_as_a_problem(error: Exception, status: int):
    begun, body = answers(failing(error))
    assert begun["status"] == status
    assert b"private" not in body["body"]
    assert (b"x-content-type-options", b"nosniff") in begun["headers"]


def test_an_answer_that_has_begun_is_not_begun_again():
    sent = answers(failing(NotFound("x"), after=1))
    assert [message["type"] for message in sent] == ["http.response.start"]

"""Who passes the gate, and what becomes of what goes wrong behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lore.errors import NotFound
from lore.records import AccessScope, Grant
from lore.server import gate
from lore.server.gate import Catching
from lore.tools.callers import GRANT


def asked(*scopes: AccessScope) -> Scope:
    return {"type": "http", GRANT: Grant("someone", frozenset(scopes))}


def test_a_grant_opens_what_it_names_and_admin_opens_all():
    assert gate.require(asked("read", "write"), "read").name == "someone"
    assert gate.require(asked("admin"), "read", "push").name == "someone"
    with pytest.raises(HTTPException, match="it needs read and push"):
        gate.require(asked("read"), "read", "push")


def test_nothing_is_open_to_whom_the_gate_has_not_seen():
    with pytest.raises(HTTPException) as refused:
        gate.require({"type": "http"}, "read")
    assert refused.value.status_code == 403


def answers(app: ASGIApp) -> list[Message]:
    """Return what is sent for a request to an app behind `Catching`."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/x/y", "headers": []}
    asyncio.run(Catching(app)(scope, receive, send))
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

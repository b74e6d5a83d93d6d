"""Forwarding: what is tried again, and what is said where nothing helps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import aiohttp
import pytest

from lore.errors import ProviderUnavailable
from lore.gateway.upstream import RETRY_BACKOFF_S, Body, UpstreamClient

ADDRESS = "http://127.0.0.1:9/v1/messages"
UNREACHED = "The provider cannot be reached at http://127.0.0.1:9."


class Unreached(aiohttp.TCPConnector):
    """Fails to connect, and counts how often it is asked to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.asked = 0
        self._error = error

    async def connect(self, *_given: Any, **_named: Any) -> NoReturn:
        self.asked += 1
        raise self._error


def asked(error: Exception, body: Body | None = b"{}", address: str = ADDRESS) -> tuple[int, str]:
    """Return how often a connection was tried, and what was said in the end."""

    async def ask() -> tuple[int, str]:
        connector = Unreached(error)
        forwarding = UpstreamClient(connector)
        try:
            with pytest.raises(ProviderUnavailable) as told:
                await forwarding.send("POST", address, [], body)
        finally:
            await forwarding.close()
        return connector.asked, str(told.value)

    return asyncio.run(ask())


async def coming() -> AsyncIterator[bytes]:
    yield b"{}"


def refused() -> aiohttp.ClientConnectorError:
    key: Any = type("Key", (), {"host": "a", "port": 9, "ssl": True, "is_ssl": False})()
    return aiohttp.ClientConnectorError(key, OSError("refused"))


def test_refused_connection_is_retried_twice():
    assert asked(refused()) == (1 + len(RETRY_BACKOFF_S), UNREACHED)


def test_streamed_body_is_sent_once():
    assert asked(refused(), coming()) == (1, UNREACHED)


def test_connect_timeout_is_not_retried():
    error = aiohttp.ConnectionTimeoutError()
    assert asked(error) == (1, UNREACHED)


def test_aborted_response_is_reported_as_unreadable():
    error = aiohttp.ServerDisconnectedError()
    assert asked(error) == (1, "The provider's answer could not be read.")


def test_invalid_request_is_not_reported_as_a_bad_response():
    assert asked(refused(), address="http://[") == (0, "The request could not be sent as it is.")
    assert asked(ValueError("a newline")) == (1, "The request could not be sent as it is.")


def test_unreachable_error_names_only_the_host():
    address = "http://me:secret@a.test:9/v1/messages?key=secret"
    assert asked(refused(), address=address)[1] == (
        "The provider cannot be reached at http://a.test:9."
    )

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


def test_a_connection_that_is_refused_is_tried_twice_again():
    assert asked(refused()) == (1 + len(RETRY_BACKOFF_S), UNREACHED)


def test_a_body_that_is_still_to_come_is_sent_once():
    assert asked(refused(), coming()) == (1, UNREACHED)


def test_a_connection_that_takes_too_long_is_not_tried_again():
    error = aiohttp.ConnectionTimeoutError()
    assert asked(error) == (1, UNREACHED)


def test_an_answer_that_breaks_off_is_said_to_be_unreadable():
    error = aiohttp.ServerDisconnectedError()
    assert asked(error) == (1, "The provider's answer could not be read.")


def test_what_is_wrong_with_the_request_is_not_said_of_the_answer():
    assert asked(refused(), address="http://[") == (0, "The request could not be sent as it is.")
    assert asked(ValueError("a newline")) == (1, "The request could not be sent as it is.")


def test_who_cannot_be_reached_is_named_without_what_stands_around_the_host():
    address = "http://me:secret@a.test:9/v1/messages?key=secret"
    assert asked(refused(), address=address)[1] == (
        "The provider cannot be reached at http://a.test:9."
    )

"""Streaming: what upstream says goes to the client as it comes, as long as the client is there.

The client is watched all the time: `receive` tells that it has left, and then upstream is let go
at once, also before it has said anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import aiohttp
from starlette.types import Message, Receive, Send

from lore.errors import InvalidInput, ProviderError, ProviderUnavailable
from lore.gateway.bodies import Unpacking, can_decode
from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Answer, Relay
from lore.gateway.keeping import is_stream
from lore.gateway.watching import Watched

Ask = Callable[[bytes], Awaitable[aiohttp.ClientResponse]]
Think = Callable[[Callable[[], Any]], Awaitable[Any]]


class Head(Protocol):
    """Makes the head of an answer out of that of an upstream."""

    def __call__(self, response: aiohttp.ClientResponse, *, spliced: bool) -> Message:
        """Return the head that the client is given."""


_BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError)
"""How an answer ends that upstream did not bring to an end."""

_LONGEST_REFUSAL_BYTES = 65_536
_LOST = b"Lore could not go on with this answer."


async def while_present(
    work: Coroutine[Any, Any, None], receive: Receive, body_is_in: asyncio.Event
) -> bool:
    """Do some work unless the client leaves before it is done; tell whether it stayed."""
    working = asyncio.current_task()
    assert working is not None
    over = left = False

    def let_go(leaving: asyncio.Task[None]) -> None:
        nonlocal left
        if not over and not leaving.cancelled():
            left = True
            working.cancel()

    leaving = asyncio.ensure_future(_departure(receive, body_is_in))
    leaving.add_done_callback(let_go)
    try:
        await work
    except asyncio.CancelledError:
        # a stop of the server cancels too, and goes on to whoever waits for this
        if not left or working.uncancel():
            raise
    finally:
        over = True
        leaving.cancel()
    return not left


async def _departure(receive: Receive, body_is_in: asyncio.Event) -> None:
    """Return once the client has left; before its body is in, whoever reads that finds out."""
    await body_is_in.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


async def pass_on(response: aiohttp.ClientResponse, send: Send, watched: Watched) -> bool:
    """Send on a body piece by piece; tell whether upstream brought it to an end."""
    try:
        async for piece in response.content.iter_any():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            watched.see(piece)
    except _BROKEN:
        return False
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return True


class Outlet:
    """Where the client hears an answer: its head waits for the first words, or for an error."""

    def __init__(self, send: Send, start: Message) -> None:
        self._send = send
        self._start = start
        self.is_begun = False

    async def begin(self) -> None:
        """Send the head, once."""
        if not self.is_begun:
            self.is_begun = True
            await self._send(self._start)

    async def say(self, piece: bytes) -> None:
        """Send a piece of the body, if there is any."""
        if piece:
            await self.begin()
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> bool:
        """Send the end, and tell that it came."""
        await self.begin()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return True


async def splice_on(
    response: aiohttp.ClientResponse,
    send: Send,
    head: Head,
    watched: Watched,
    relay: Relay,
    ask: Ask,
    think: Think,
) -> bool:
    """Send on what a relay makes of one answer after the other; tell whether they ended.

    Raises `ProviderError` where they did not before the client was told anything.
    """
    client = Outlet(send, head(response, spliced=True))
    try:
        while True:
            await _feed(relay, response, client, watched)
            body = attempt("recall", relay.follow) if relay.is_idle else await think(relay.follow)
            if not isinstance(body, bytes):
                return await _end(body, relay, client, send)
            response.close()
            response = await ask(body)
            watched.begin(response.status, told(response))
            if response.status != 200 and not client.is_begun:
                await send(head(response, spliced=False))
                return await pass_on(response, send, watched)
            if response.status != 200:
                refused = await response.content.read(_LONGEST_REFUSAL_BYTES)
                watched.see(refused)
                await client.say(relay.fail(response.status, _unpacked(response, refused)))
                return await client.end()
    except ProviderError as error:
        if not client.is_begun:
            raise
        await client.say(relay.fail(502, str(error).encode()))
        return await client.end()
    except _BROKEN:
        return _lost(client)
    finally:
        response.close()


async def _end(why: Answer | Failure | None, relay: Relay, client: Outlet, send: Send) -> bool:
    """End an answer for which upstream is not asked again, and tell whether it came to its end."""
    if why is None:
        await client.say(relay.rest())
    elif isinstance(why, Answer) and client.is_begun:
        await client.say(relay.fail(why.status, why.body))
    elif isinstance(why, Answer):
        await answer_with(why, send)
        return True
    elif client.is_begun:
        await client.say(relay.fail(500, _LOST))
    else:
        return _lost(client)
    return await client.end()


async def _feed(
    relay: Relay, response: aiohttp.ClientResponse, client: Outlet, watched: Watched
) -> None:
    """Send on what a relay makes of one answer."""
    if is_stream(told(response)):
        await client.begin()
    if not can_splice(response):
        raise ConnectionAbortedError
    unpacking = Unpacking(_encodings(response))
    async for piece in response.content.iter_any():
        steps = unpacking.steps(piece)
        while (fed := attempt("splice", partial(_fed, relay, steps))) is not None:
            if isinstance(fed, Failure):
                # what was held back is lost: the client has to ask again
                raise ConnectionAbortedError
            await client.say(fed)
            if unpacking.is_packed:
                await asyncio.sleep(0)  # a piece may have many steps, and others are served too
        watched.see(piece)


def _fed(relay: Relay, steps: Iterator[bytes]) -> bytes | None:
    """Return what a relay makes of the next step of a piece; None behind the last."""
    step = next(steps, None)
    return None if step is None else relay.feed(step)


def _encodings(response: aiohttp.ClientResponse) -> str:
    """Return how an answer is packed, which upstream is asked not to do."""
    return told(response).get("content-encoding", "")


def can_splice(response: aiohttp.ClientResponse) -> bool:
    """Tell whether an answer can be read while it passes, and more be put into it."""
    return response.status == 200 and can_decode(_encodings(response))


def _unpacked(response: aiohttp.ClientResponse, body: bytes) -> bytes:
    """Return why upstream refused, as far as that can be read."""
    try:
        return Unpacking(_encodings(response)).feed(body)
    except InvalidInput:
        return b""


def _lost(client: Outlet) -> bool:
    """Tell that an answer did not come to its end, or raise where it has not begun."""
    if not client.is_begun:
        msg = "The answer was broken off."
        raise ProviderUnavailable(msg)
    return False


def told(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers of an answer for whoever watches it."""
    return {name.lower(): value for name, value in response.headers.items()}


async def answer_with(answer: Answer, send: Send, more: Sequence[tuple[str, str]] = ()) -> None:
    """Send an answer of the gateway's own."""
    headers = [*answer.headers, *more, ("content-length", str(len(answer.body)))]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})

"""The upstream side of the proxy: send a request, and stream its response to the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import lru_cache, partial
from io import BytesIO
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from starlette.types import Message, Receive, Send
from yarl import URL

from lore.errors import InvalidInput, ProviderError, ProviderUnavailable
from lore.gateway.http_body import BodyDecoder, can_decode
from lore.gateway.observer import SafeObserver, is_stream
from lore.gateway.plugin_protocol import LocalResponse, ResponseInterceptor
from lore.gateway.workers import Failure, attempt

Body = bytes | AsyncIterator[bytes]

CONNECT_TIMEOUT_S = 10.0
"""An upstream that takes longer to accept a connection counts as unreachable."""

KEEP_ALIVE_S = 45.0
"""Idle connections outlast the pause between two turns, and are closed before providers close them.
"""

RETRY_BACKOFF_S = (0.1, 0.4)
"""Backoff between attempts to connect where one was refused; nothing else is ever retried."""

_FINAL_STATUSES = range(200, 600)
"""Statuses that end a request (RFC 9110, 15)."""

_MAX_HEADER_BYTES = 65_536
_MAX_SINGLE_WRITE_BYTES = 1_000_000
"""aiohttp sends what is shorter in one piece."""

_NO_AUTO_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")


class UpstreamClient:
    """A client of every upstream; open it in the event loop that uses it."""

    def __init__(self, connector: aiohttp.BaseConnector | None = None) -> None:
        connector = connector or aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_NO_AUTO_HEADERS,
            auto_decompress=False,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(
        self, method: str, address: str, headers: Sequence[tuple[str, str]], body: Body | None
    ) -> aiohttp.ClientResponse:
        """Send a request, retrying refused connections; return the response once its status is
        known. The caller closes it."""
        # A streamed body can be sent only once.
        backoff = iter(RETRY_BACKOFF_S if isinstance(body, bytes | None) else ())
        while True:
            try:
                return await self._send_once(method, address, headers, body)
            except aiohttp.ClientConnectorError as error:
                delay_s = next(backoff, None)
                if delay_s is None:
                    raise _unreachable(address) from error
            await asyncio.sleep(delay_s)

    async def _send_once(
        self, method: str, address: str, headers: Sequence[tuple[str, str]], body: Body | None
    ) -> aiohttp.ClientResponse:
        try:
            response = await self._session.request(
                method,
                URL(address.replace("#", "%23"), encoded=True),
                headers=headers,
                data=_payload(body),
                allow_redirects=False,
                proxy=_proxy_for(*urlsplit(address)[:2]),
            )
        except aiohttp.ClientConnectorError:
            raise
        except aiohttp.ConnectionTimeoutError as error:
            raise _unreachable(address) from error
        except ValueError as error:
            msg = "The request could not be sent as it is."
            raise ProviderUnavailable(msg) from error
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            msg = "The provider's answer could not be read."
            raise ProviderUnavailable(msg) from error
        if response.status not in _FINAL_STATUSES:
            response.close()
            msg = f"The provider answered with status {response.status}, which ends no request."
            raise ProviderUnavailable(msg)
        return response


def _unreachable(address: str) -> ProviderUnavailable:
    """Return the error for an upstream that does not accept connections; it names only the host."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return ProviderUnavailable(f"The provider cannot be reached at {parts.scheme}://{host}.")


def _payload(body: Body | None) -> Body | BytesIO | None:
    long = isinstance(body, bytes) and len(body) > _MAX_SINGLE_WRITE_BYTES
    return BytesIO(body) if long and isinstance(body, bytes) else body


@lru_cache(maxsize=16)
def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the HTTP proxy of this machine for an address."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return proxy if proxy and not proxy_bypass(host) else None


Ask = Callable[[bytes], Awaitable[aiohttp.ClientResponse]]
RunInThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class ResponseStart(Protocol):
    """Makes the start of the client's response from an upstream response."""

    def __call__(self, response: aiohttp.ClientResponse, *, rewritten: bool) -> Message:
        """Return status and headers for the client."""


_CONNECTION_ERRORS = (aiohttp.ClientError, ConnectionError, TimeoutError)
"""Errors of a response that upstream did not complete."""

_MAX_ERROR_BYTES = 65_536
_FAILED = b"Lore could not go on with this answer."


async def while_present(
    work: Coroutine[Any, Any, None], receive: Receive, body_is_in: asyncio.Event
) -> bool:
    """Run some work unless the client disconnects first; return whether it stayed."""
    worker = asyncio.current_task()
    assert worker is not None
    is_done = left = False

    def cancel_work(disconnect: asyncio.Task[None]) -> None:
        nonlocal left
        if not is_done and not disconnect.cancelled():
            left = True
            worker.cancel()

    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive, body_is_in))
    disconnect.add_done_callback(cancel_work)
    try:
        await work
    except asyncio.CancelledError:
        # A server stop cancels too, and must propagate.
        if not left or worker.uncancel():
            raise
    finally:
        is_done = True
        disconnect.cancel()
    return not left


async def _wait_for_disconnect(receive: Receive, body_is_in: asyncio.Event) -> None:
    """Return once the client has left; until its body is in, its reader notices that."""
    await body_is_in.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


async def stream_unchanged(
    response: aiohttp.ClientResponse, send: Send, observer: SafeObserver
) -> bool:
    """Forward a body chunk by chunk; return whether upstream completed it."""
    try:
        async for chunk in response.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            observer.see(chunk)
    except _CONNECTION_ERRORS:
        return False
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return True


class ClientStream:
    """The response to the client: its start waits for the first bytes, or for an error."""

    def __init__(self, send: Send, start: Message) -> None:
        self._send = send
        self._start = start
        self.has_started = False

    async def start(self) -> None:
        """Send status and headers, once."""
        if not self.has_started:
            self.has_started = True
            await self._send(self._start)

    async def write(self, chunk: bytes) -> None:
        """Send a chunk, unless it is empty."""
        if chunk:
            await self.start()
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> bool:
        """Send the end, and return True."""
        await self.start()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return True


async def stream_rewritten(
    response: aiohttp.ClientResponse,
    send: Send,
    make_start: ResponseStart,
    observer: SafeObserver,
    interceptor: ResponseInterceptor,
    ask: Ask,
    run: RunInThread,
) -> bool:
    """Forward what an interceptor makes of one response after the other; return whether they
    completed.

    Raises `ProviderError` if they did not before the client got anything.
    """
    client = ClientStream(send, make_start(response, rewritten=True))
    try:
        while True:
            await _feed(interceptor, response, client, observer)
            body = (
                attempt("recall", interceptor.follow)
                if interceptor.is_idle
                else await run(interceptor.follow)
            )
            if not isinstance(body, bytes):
                return await _end(body, interceptor, client, send)
            response.close()
            response = await ask(body)
            observer.begin(response.status, response_headers(response))
            if response.status != 200 and not client.has_started:
                await send(make_start(response, rewritten=False))
                return await stream_unchanged(response, send, observer)
            if response.status != 200:
                error_body = await response.content.read(_MAX_ERROR_BYTES)
                observer.see(error_body)
                await client.write(
                    interceptor.fail(response.status, _decode_error(response, error_body))
                )
                return await client.end()
    except ProviderError as error:
        if not client.has_started:
            raise
        await client.write(interceptor.fail(502, str(error).encode()))
        return await client.end()
    except _CONNECTION_ERRORS:
        return _broken_off(client)
    finally:
        response.close()


async def _end(
    result: LocalResponse | Failure | None,
    interceptor: ResponseInterceptor,
    client: ClientStream,
    send: Send,
) -> bool:
    """End a response that needs no follow-up request; return whether it is complete."""
    if result is None:
        await client.write(interceptor.rest())
    elif isinstance(result, LocalResponse) and client.has_started:
        await client.write(interceptor.fail(result.status, result.body))
    elif isinstance(result, LocalResponse):
        await send_local_response(result, send)
        return True
    elif client.has_started:
        await client.write(interceptor.fail(500, _FAILED))
    else:
        return _broken_off(client)
    return await client.end()


async def _feed(
    interceptor: ResponseInterceptor,
    response: aiohttp.ClientResponse,
    client: ClientStream,
    observer: SafeObserver,
) -> None:
    """Forward what an interceptor makes of one response."""
    if is_stream(response_headers(response)):
        await client.start()
    if not can_rewrite(response):
        raise ConnectionAbortedError
    decoder = BodyDecoder(_encodings(response))
    async for chunk in response.content.iter_any():
        steps = decoder.steps(chunk)
        while (output := attempt("rewrite", partial(_feed_step, interceptor, steps))) is not None:
            if isinstance(output, Failure):
                # Buffered output is lost: the client has to retry.
                raise ConnectionAbortedError
            await client.write(output)
            if decoder.has_encoding:
                await asyncio.sleep(0)  # A chunk may decode in many steps: serve others too.
        observer.see(chunk)


def _feed_step(interceptor: ResponseInterceptor, steps: Iterator[bytes]) -> bytes | None:
    """Feed the next decoded step of a chunk; return None after the last."""
    step = next(steps, None)
    return None if step is None else interceptor.feed(step)


def _encodings(response: aiohttp.ClientResponse) -> str:
    """Return the content encoding of a response, although upstream was asked for none."""
    return response_headers(response).get("content-encoding", "")


def can_rewrite(response: aiohttp.ClientResponse) -> bool:
    """Return whether a response can be parsed and rewritten while it passes."""
    return response.status == 200 and can_decode(_encodings(response))


def _decode_error(response: aiohttp.ClientResponse, body: bytes) -> bytes:
    try:
        return BodyDecoder(_encodings(response)).feed(body)
    except InvalidInput:
        return b""


def _broken_off(client: ClientStream) -> bool:
    """Return False for a response that broke off, or raise if it has not started."""
    if not client.has_started:
        msg = "The response was cut off."
        raise ProviderUnavailable(msg)
    return False


def response_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers of a response with lower-case names."""
    return {name.lower(): value for name, value in response.headers.items()}


async def send_local_response(
    response: LocalResponse, send: Send, extra_headers: Sequence[tuple[str, str]] = ()
) -> None:
    """Send a response of the gateway itself."""
    headers = [*response.headers, *extra_headers, ("content-length", str(len(response.body)))]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": response.status, "headers": raw})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})

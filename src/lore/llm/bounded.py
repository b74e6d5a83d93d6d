"""Bounds on a request: an end to what is too slow or too large, whatever the other side does.

The time limits of an HTTP client hold for each read; a service that sends a byte now and then
would keep it for ever.
"""

from __future__ import annotations

import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2

from lore.proxy.address import LOOPBACK

LARGEST_BODY_BYTES = 8 * 1024 * 1024
"""The longest answers that are asked for are some 100 KB."""


def open_client(url: str, timeout_s: float) -> httpx2.Client:
    """Return a client for one address that ends every request in time.

    A redirect would carry texts and key to an address that nobody chose, so none is followed.
    """
    inner = httpx2.HTTPTransport(proxy=_proxy_for(url), limits=httpx2.Limits(max_connections=4))
    transport = BoundedTransport(inner, timeout_s)
    return httpx2.Client(transport=transport, timeout=timeout_s, follow_redirects=False)


def _proxy_for(url: str) -> str | None:
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


class BoundedTransport(httpx2.BaseTransport):
    """Another transport, with a limit on the whole time and size of a request."""

    def __init__(self, inner: httpx2.BaseTransport, timeout_s: float) -> None:
        self._inner = inner
        self._timeout_s = timeout_s
        self._open: set[_Watch] = set()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its answer must have come whole when the time is over."""
        watch = _Watch(self._timeout_s, self._open)
        request.extensions = {**request.extensions, "trace": watch.note}
        # A connection that is used again was noted by a former watch.
        request.headers["Connection"] = "close"
        request.headers["Accept-Encoding"] = "identity"
        try:
            response = self._inner.handle_request(request)
        except httpx2.HTTPError as error:
            watch.end()
            raise watch.told(error) from error
        except BaseException:
            watch.end()
            raise
        assert isinstance(response.stream, httpx2.SyncByteStream)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            # What is packed can be a thousand times as large as the bytes that come.
            watch.end()
            response.close()
            msg = "packed, though that was not asked for"
            raise httpx2.DecodingError(msg)
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_BoundedStream(response.stream, watch),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """End the requests that are under way."""
        for watch in list(self._open):
            watch.cut()
        self._inner.close()


class _Watch:
    """The clock of one request: when it runs out, the connection is cut."""

    def __init__(self, timeout_s: float, among: set[_Watch]) -> None:
        self.is_late = False
        self._among = among
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(timeout_s, self.cut)
        self._timer.daemon = True
        self._timer.start()
        among.add(self)

    def note(self, _event: str, info: dict[str, Any]) -> None:
        """Keep the connection, which is told when it is made and when it is encrypted."""
        find = getattr(info.get("return_value"), "get_extra_info", None)
        found = find("socket") if find else None
        if isinstance(found, socket.socket):
            self._sockets.append(found)
            if self.is_late:
                self.cut()

    def cut(self) -> None:
        """Cut the connection: a thread that waits for it wakes up."""
        self.is_late = True
        for one in self._sockets:
            with suppress(OSError):
                # Not its own method: an encrypted socket forgets its state there, under a reader.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        self._among.discard(self)

    def told(self, error: httpx2.HTTPError) -> httpx2.HTTPError:
        """Return the error, or one of time where that was the reason."""
        return httpx2.ReadTimeout("too slow") if self.is_late else error


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, watch: _Watch) -> None:
        self._inner = inner
        self._watch = watch

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for piece in self._inner:
                size += len(piece)
                if size > LARGEST_BODY_BYTES:
                    msg = "too large"
                    raise httpx2.ReadError(msg)
                yield piece
        except httpx2.HTTPError as error:
            raise self._watch.told(error) from error
        if self._watch.is_late:
            msg = "too slow"
            raise httpx2.ReadTimeout(msg)

    def close(self) -> None:
        """Give the connection back, and stop watching."""
        self._watch.end()
        self._inner.close()

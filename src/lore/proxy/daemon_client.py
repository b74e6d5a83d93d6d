"""Minimal HTTP client: one request to the daemon over a plain socket, within a deadline."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from lore.proxy.address import Address

IDLE_CHECK_S = 5.0
"""After this many seconds without a byte, check the daemon's health before waiting on."""

_HEALTH_TIMEOUT_S = 5.0
"""The event loop answers a health check at once, even when the daemon is busy."""

_HEALTH_PATH = "/health"

_CONNECT_TIMEOUT_S = 1.0
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_CHUNK = 65_536


class DaemonUnreachable(OSError):
    """The connection failed; nothing was sent."""


class ResponseLost(OSError):
    """The request was sent, but no complete response came back."""

    reason = ""

    def __str__(self) -> str:
        """Return the reason of a subclass, or the message of the system."""
        return self.reason or super().__str__()


class ResponseTruncated(ResponseLost):
    """The response ended too early."""

    reason = "the answer was cut off"


class ResponseTooLarge(ResponseLost):
    """The response exceeds the size limit."""

    reason = "the answer is too large"


class ResponseTimeout(ResponseLost):
    """The response did not arrive before the deadline."""

    reason = "it took too long"


class DaemonHung(ResponseLost):
    """The daemon does not answer health checks."""

    reason = "it does not answer at all"


class DaemonCall:
    """One request in flight, which another thread can cancel."""

    __slots__ = ("_ended", "_socket")

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._ended = False

    def cancel(self) -> None:
        """Close the connection; the waiting thread gets `ResponseLost`."""
        self._ended = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def is_cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self._ended

    def post(
        self,
        address: Address,
        path: str,
        body: bytes,
        headers: dict[str, str],
        within_s: float,
        *,
        check_health: bool = False,
    ) -> tuple[int, bytes]:
        """Post JSON and return the status and body of the response.

        With `check_health`, give up early if the daemon stops answering health checks.
        """
        all_headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **headers,
        }
        return self._send(
            address,
            _request_head(address, "POST", path, all_headers) + body,
            within_s,
            while_well=check_health,
        )

    def get(self, address: Address, path: str, within_s: float) -> tuple[int, bytes]:
        """Get a path and return the status and body of the response."""
        return self._send(
            address, _request_head(address, "GET", path, {}), within_s, while_well=False
        )

    def _send(
        self, address: Address, request: bytes, within_s: float, *, while_well: bool
    ) -> tuple[int, bytes]:
        until = time.monotonic() + within_s
        try:
            line = socket.create_connection(
                (address.host, address.port), min(_CONNECT_TIMEOUT_S, within_s)
            )
        except OSError as error:
            raise DaemonUnreachable(str(error)) from error
        if (
            not address.is_current()
        ):  # another program may have accepted the connection, and must not get the key
            line.close()
            raise DaemonUnreachable
        self._socket = line
        try:
            if self._ended:
                raise ResponseTruncated
            line.settimeout(_time_left(until))
            line.sendall(request)
            return _read_response(line, until, address if while_well else None)
        except ResponseLost:
            raise
        except OSError as error:
            raise ResponseLost(str(error)) from error
        finally:
            line.close()


def is_healthy(address: Address, within_s: float = _HEALTH_TIMEOUT_S) -> bool:
    """Return whether the daemon answers a health check, with any status."""
    try:
        DaemonCall().get(address, _HEALTH_PATH, within_s)
    except OSError:
        return False
    return True


def _request_head(address: Address, method: str, path: str, headers: dict[str, str]) -> bytes:
    host = f"[{address.host}]" if ":" in address.host else address.host
    lines = [
        f"{method} {path} HTTP/1.1",
        f"host: {host}:{address.port}",
        f"authorization: Bearer {address.key}",
        "accept: application/json, text/event-stream",
        "connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def percent_encode(text: str) -> str:
    """Return a text percent-encoded, so that it can stand in a header."""
    plain = range(0x21, 0x7F)
    return "".join(
        chr(byte) if byte in plain and byte != 0x25 else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def _read_response(line: socket.socket, until: float, watched: Address | None) -> tuple[int, bytes]:
    """Read to the end of the connection; the server closes it after the response."""
    parts: list[bytes] = []
    size = 0
    while True:
        part = _read_part(line, until, watched)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > _MAX_RESPONSE_BYTES:
            raise ResponseTooLarge
    head, gap, body = b"".join(parts).partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if not gap or len(words) < 2 or not words[1].isdigit():
        raise ResponseTruncated
    fields = _parse_headers(head)
    try:
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            body = _decode_chunked(body)
        elif len(body) != int(fields.get(b"content-length", b"0")):
            raise ResponseTruncated
    except ValueError as error:
        raise ResponseLost(str(error)) from error
    return int(words[1]), body


def _read_part(line: socket.socket, until: float, watched: Address | None) -> bytes:
    while True:
        left_s = _time_left(until)
        line.settimeout(left_s if watched is None else min(left_s, IDLE_CHECK_S))
        try:
            return line.recv(_CHUNK)
        except TimeoutError:
            if watched is not None and not is_healthy(watched):
                raise DaemonHung from None


def _parse_headers(head: bytes) -> dict[bytes, bytes]:
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _decode_chunked(body: bytes) -> bytes:
    whole: list[bytes] = []
    while body:
        size, gap, rest = body.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if not gap or len(rest) < length:
            raise ResponseTruncated
        if not length:
            return b"".join(whole)
        whole.append(rest[:length])
        body = rest[length + 2 :]
    raise ResponseTruncated


def _time_left(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise ResponseTimeout
    return left_s

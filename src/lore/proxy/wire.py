"""The wire: one request to a running Lore over a plain socket, within a deadline."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from lore.proxy.address import Address

QUIET_S = 5.0
"""After so long without a byte of the answer, Lore is asked whether it still answers at all."""

_WELL_S = 5.0
"""The loop of the server has that answer at once, however busy the rest of it is."""

_WELL_PATH = "/health"

_CONNECT_S = 1.0
_LARGEST_ANSWER = 64 * 1024 * 1024
_CHUNK = 65_536


class Unreachable(OSError):
    """Nobody listens: nothing was sent."""


class Lost(OSError):
    """The request was sent, and no whole answer came back."""


class CutOff(Lost):
    """The answer ended too early."""

    def __init__(self) -> None:
        super().__init__("the answer was cut off")


class TooLarge(Lost):
    """The answer is larger than any that Lore gives."""

    def __init__(self) -> None:
        super().__init__("the answer is too large")


class TooLate(Lost):
    """The answer did not come in time."""

    def __init__(self) -> None:
        super().__init__("it took too long")


class Hung(Lost):
    """Lore does not even say that it is well."""

    def __init__(self) -> None:
        super().__init__("it does not answer at all")


class Call:
    """One request under way, which another thread may end."""

    __slots__ = ("_ended", "_socket")

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._ended = False

    def end(self) -> None:
        """Hang up; whoever waits for the answer gets `Lost`."""
        self._ended = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def ended(self) -> bool:
        """Tell whether somebody hung up."""
        return self._ended

    def post(
        self,
        address: Address,
        path: str,
        body: bytes,
        headers: dict[str, str],
        within_s: float,
        *,
        while_well: bool = False,
    ) -> tuple[int, bytes]:
        """Send JSON and return the status and the body of the answer.

        With `while_well` it is not waited for a Lore that has stopped to answer altogether.
        """
        told = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        return self._ask(
            address, _head(address, "POST", path, told) + body, within_s, while_well=while_well
        )

    def get(self, address: Address, path: str, within_s: float) -> tuple[int, bytes]:
        """Read what is at a path and return the status and the body of the answer."""
        return self._ask(address, _head(address, "GET", path, {}), within_s, while_well=False)

    def _ask(
        self, address: Address, request: bytes, within_s: float, *, while_well: bool
    ) -> tuple[int, bytes]:
        until = time.monotonic() + within_s
        try:
            line = socket.create_connection((address.host, address.port), min(_CONNECT_S, within_s))
        except OSError as error:
            raise Unreachable(str(error)) from error
        if not address.is_true():  # a stranger may have taken the call, and gets no key
            line.close()
            raise Unreachable
        self._socket = line
        try:
            if self._ended:
                raise CutOff
            line.settimeout(_left(until))
            line.sendall(request)
            return _read_answer(line, until, address if while_well else None)
        except Lost:
            raise
        except OSError as error:
            raise Lost(str(error)) from error
        finally:
            line.close()


def is_well(address: Address, within_s: float = _WELL_S) -> bool:
    """Tell whether Lore answers at an address, whatever it says."""
    try:
        Call().get(address, _WELL_PATH, within_s)
    except OSError:
        return False
    return True


def _head(address: Address, method: str, path: str, headers: dict[str, str]) -> bytes:
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


def encoded(text: str) -> str:
    """Return a text as it can stand in a header: what is not plain ASCII is percent-encoded."""
    plain = range(0x21, 0x7F)
    return "".join(
        chr(byte) if byte in plain and byte != 0x25 else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def _read_answer(line: socket.socket, until: float, watched: Address | None) -> tuple[int, bytes]:
    """Read to the end: the server closes the connection after its answer."""
    parts: list[bytes] = []
    size = 0
    while True:
        part = _read_part(line, until, watched)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > _LARGEST_ANSWER:
            raise TooLarge
    head, gap, body = b"".join(parts).partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if not gap or len(words) < 2 or not words[1].isdigit():
        raise CutOff
    fields = _fields(head)
    try:
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            body = _unchunked(body)
        elif len(body) != int(fields.get(b"content-length", b"0")):
            raise CutOff
    except ValueError as error:
        raise Lost(str(error)) from error
    return int(words[1]), body


def _read_part(line: socket.socket, until: float, watched: Address | None) -> bytes:
    while True:
        left_s = _left(until)
        line.settimeout(left_s if watched is None else min(left_s, QUIET_S))
        try:
            return line.recv(_CHUNK)
        except TimeoutError:
            if watched is not None and not is_well(watched):
                raise Hung from None


def _fields(head: bytes) -> dict[bytes, bytes]:
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _unchunked(body: bytes) -> bytes:
    whole: list[bytes] = []
    while body:
        size, gap, rest = body.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if not gap or len(rest) < length:
            raise CutOff
        if not length:
            return b"".join(whole)
        whole.append(rest[:length])
        body = rest[length + 2 :]
    raise CutOff


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TooLate
    return left

"""Stdio proxy for MCP: forward JSON-RPC lines from an agent to the running daemon.

An agent starts it for every session, so it has to start quickly: it knows JSON-RPC and only those
parts of MCP that the HTTP headers need. It answers an agent's first requests from the cached
handshake, while the daemon may still be starting. Only protocol messages go to standard output.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

from lore.proxy.address import Address
from lore.proxy.cached_handshake import (
    HANDSHAKE_METHODS,
    INITIALIZE,
    VERSION_FIELD,
    Handshake,
    find_result,
)
from lore.proxy.daemon_client import (
    DaemonCall,
    DaemonHung,
    DaemonUnreachable,
    ResponseLost,
    percent_encode,
)

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603

Message = dict[str, Any]


class InvalidMessage(ValueError):
    """A line that is not a valid message; `id` is that of its request, if it has a valid one."""

    def __init__(self, code: int, message: str, id_: str | int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id_


def parse_line(line: bytes) -> Message:
    """Parse a line into a message, or raise `InvalidMessage`.

    Lone surrogates are rejected: programs that cut an emoji in half send them, and they cannot be
    stored as text.
    """
    try:
        message = json.loads(line, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(PARSE_ERROR, "This line is not JSON.") from error
    if not isinstance(message, dict):
        raise InvalidMessage(INVALID_REQUEST, "A message must be an object; no batches.")
    id_ = message.get("id")
    sound = id_ if type(id_) in (str, int) else None
    if b"\\u" in line and not _is_encodable(message):
        sound = sound if _is_encodable(sound) else None
        raise InvalidMessage(
            PARSE_ERROR, "This message contains half a character (a lone surrogate).", sound
        )
    if "method" in message:
        if "id" in message and sound is None:
            raise InvalidMessage(
                INVALID_REQUEST, "The id of a request must be a string or an integer."
            )
        if not isinstance(message["method"], str):
            raise InvalidMessage(INVALID_REQUEST, "The method must be a string.", sound)
    elif not message.keys() & {"result", "error"}:
        raise InvalidMessage(INVALID_REQUEST, "This message has no method.", sound)
    return message


def is_request(message: Message) -> bool:
    """Return whether a message expects a response."""
    return "id" in message and "method" in message


def error_response(id_: object, code: int, message: str) -> bytes:
    """Return a JSON-RPC error response."""
    error = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}
    return json.dumps(error).encode()


def _reject_constant(name: str) -> object:
    """Reject NaN and Infinity, which Python parses but JSON does not allow."""
    raise ValueError(name)


def _is_encodable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


MCP_PATH = "/mcp"

CALL_TIMEOUT_S = 120.0
"""Longer than the slowest tool takes on a large memory."""

MAX_LINE_BYTES = 32_000_000
"""Half of the largest body that the daemon still reads before it rejects it.

A longer one would be cut off while it is sent, and the agent would not get the reason.
"""

_MAX_CONCURRENT = 16
_NAME_FIELDS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

FindDaemon = Callable[[], Address | None]
LoadHandshake = Callable[[], Handshake | None]


class StdioProxy:
    """Proxy between one agent and the daemon; `find_daemon` finds or starts the daemon.

    `load_handshake` loads the cached handshake. Lines are read even while calls are running: calls
    beyond the concurrency limit wait in a queue.
    """

    def __init__(
        self,
        find_daemon: FindDaemon,
        project: str,
        out: BinaryIO,
        load_handshake: LoadHandshake = lambda: None,
    ) -> None:
        self._find_daemon = find_daemon
        self._load_handshake = load_handshake
        self._address: Address | None = None
        self._out = out
        self._headers = {"x-lore-project": percent_encode(project)}
        self._version = ""
        self._writing = threading.Lock()
        self._reaching = threading.Lock()
        self._waiting: SimpleQueue[tuple[Message, bytes, DaemonCall] | None] = SimpleQueue()
        self._calls: dict[str, DaemonCall] = {}
        self._workers: list[threading.Thread] = []
        self._connecting: threading.Thread | None = None

    def run(self, lines: BinaryIO) -> None:
        """Forward messages until the agent closes its end, then wait for the running calls."""
        for line in lines:
            if line.strip():
                self._handle_line(line.strip())
        for _ in self._workers:
            self._waiting.put(None)
        until = time.monotonic() + CALL_TIMEOUT_S
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))

    def _handle_line(self, line: bytes) -> None:
        try:
            message = parse_line(line)
        except InvalidMessage as refused:
            self._print_error(refused.id, refused.code, str(refused))
            return
        if is_request(message) and len(line) > MAX_LINE_BYTES:
            msg = f"This message is longer than {MAX_LINE_BYTES:,} bytes."
            self._print_error(message["id"], INVALID_REQUEST, msg)
        elif is_request(message):
            if not self._answer_from_cache(message):
                self._enqueue(message, line)
        elif message.get("method") == "notifications/cancelled":
            self._cancel(message)

    def _answer_from_cache(self, message: Message) -> bool:
        """Answer a request that needs no daemon; return whether it could be answered."""
        if message["method"] == "ping" and self._version:
            result: Message | None = {}
        elif message["method"] in HANDSHAKE_METHODS:
            handshake = self._load_handshake()
            result = None if handshake is None else find_result(handshake, message, self._version)
        else:
            return False
        if result is None:
            return False
        self._save_version(message, result)
        self._print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
        if self._address is None and self._connecting is None:
            self._connecting = threading.Thread(target=self._connect_in_background, daemon=True)
            self._connecting.start()
        return True

    def _connect_in_background(self) -> None:
        """Start the daemon early; if that fails, the first call reports it."""
        with suppress(DaemonUnreachable):
            self._find_address(None)

    def _enqueue(self, message: Message, line: bytes) -> None:
        call = self._calls[_id_key(message["id"])] = DaemonCall()
        self._waiting.put((message, line, call))
        if len(self._workers) < _MAX_CONCURRENT:
            worker = threading.Thread(target=self._run_worker, daemon=True)
            self._workers.append(worker)
            worker.start()

    def _run_worker(self) -> None:
        while (job := self._waiting.get()) is not None:
            self._forward(*job)

    def _forward(self, message: Message, line: bytes, call: DaemonCall) -> None:
        try:
            status, body = self._post(call, line, self._headers_of(message))
            self._print_response(message, status, body)
        except OSError as error:
            if not call.is_cancelled:
                self._print_error(message["id"], INTERNAL_ERROR, _error_text(error))
        finally:
            self._calls.pop(_id_key(message["id"]), None)

    def _post(self, call: DaemonCall, line: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Post a message; retry once with a new address if the first connection failed."""
        address = self._address or self._find_address(None)
        try:
            return call.post(address, MCP_PATH, line, headers, CALL_TIMEOUT_S, check_health=True)
        except DaemonUnreachable:
            address = self._find_address(address)
            return call.post(address, MCP_PATH, line, headers, CALL_TIMEOUT_S, check_health=True)

    def _find_address(self, former: Address | None) -> Address:
        with self._reaching:
            if self._address is former:
                self._address = self._find_daemon()
            if self._address is None:
                raise DaemonUnreachable
            return self._address

    def _headers_of(self, message: Message) -> dict[str, str]:
        """Return the headers of a request, some of which MCP repeats from the message."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(VERSION_FIELD) if isinstance(meta, dict) else None
        method = str(message["method"])
        headers = dict(self._headers)
        if isinstance(version, str):
            headers["mcp-protocol-version"] = _header_value(version)
            headers["mcp-method"] = _header_value(method)
            name = params.get(_NAME_FIELDS.get(method, ""))
            if isinstance(name, str):
                headers["mcp-name"] = _header_value(name)
        elif self._version and method != INITIALIZE:
            headers["mcp-protocol-version"] = self._version
        return headers

    def _print_response(self, message: Message, status: int, body: bytes) -> None:
        try:
            answer = json.loads(body) if body.strip() else {}
        except (ValueError, RecursionError):
            answer = {}
        if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
            detail = answer.get("detail") if isinstance(answer, dict) else ""
            self._print_error(
                message["id"], INTERNAL_ERROR, str(detail or f"Lore answered {status}.")
            )
            return
        self._save_version(message, answer.get("result"))
        if answer.get("id") is None:
            answer["id"] = message["id"]
            body = json.dumps(answer).encode()
        self._print(body.replace(b"\n", b"").replace(b"\r", b""))

    def _save_version(self, message: Message, result: object) -> None:
        """Save the protocol version that an initialize response names."""
        if message["method"] == INITIALIZE and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", ""))

    def _cancel(self, message: Message) -> None:
        params = message.get("params")
        call = (
            self._calls.get(_id_key(params.get("requestId"))) if isinstance(params, dict) else None
        )
        if call is not None:
            call.cancel()

    def _print_error(self, id_: object, code: int, text: str) -> None:
        self._print(error_response(id_, code, text))

    def _print(self, line: bytes) -> None:
        with self._writing:
            try:
                self._out.write(line + b"\n")
                self._out.flush()
            except (OSError, ValueError):
                return  # the agent has closed its end


def _id_key(id_: object) -> str:
    """Return a request id as a dictionary key: 1 and "1" are different ids."""
    return json.dumps(id_)


def _header_value(value: str) -> str:
    """Encode a header value as MCP requires: base64 unless it is plain ASCII."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    from base64 import b64encode

    return f"=?base64?{b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _error_text(error: OSError) -> str:
    if isinstance(error, DaemonUnreachable):
        return "Lore cannot be reached. Check 'lore status' and 'lore logs', then try again."
    if isinstance(error, DaemonHung):
        return (
            "Lore runs but does not answer. Go on without memory, and tell the person that"
            " 'lore down --force' ends it; the next call starts it again. What was asked may still"
            " be done: look before you repeat it."
        )
    if isinstance(error, ResponseLost):
        return f"No answer from Lore ({error}). It may have been done; look before you repeat it."
    return "Lore cannot be reached."


FIRST_REQUEST_TIMEOUT_S = 10.0
"""Agents send their first request at once; one that has not by then does not wait for an answer."""

_CHUNK = 65_536


def answer_first_request(
    reason: str, fd_in: int, fd_out: int, within_s: float = FIRST_REQUEST_TIMEOUT_S
) -> None:
    """Answer the first request on a file descriptor with an error message."""
    rest, until = b"", time.monotonic() + within_s
    while select.select([fd_in], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(fd_in, _CHUNK)
        *whole, rest = (rest + part).split(b"\n")
        for line in filter(bytes.strip, whole):
            try:
                message = parse_line(line)
            except InvalidMessage as refused:
                _write_line(fd_out, error_response(refused.id, refused.code, str(refused)))
                continue
            if is_request(message):
                _write_line(fd_out, error_response(message["id"], INTERNAL_ERROR, reason))
                return
        if not part:
            return


def _write_line(out: int, line: bytes) -> None:
    try:
        os.write(out, line + b"\n")
    except OSError:
        return  # the agent has closed its end

"""The bridge of MCP: lines on standard input are posted to the running Lore, answers printed.

An agent starts it for every session, so it is quick: it knows JSON-RPC and no more of the
protocol than the headers of HTTP need. Nothing but protocol reaches standard output.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from lore.bridges.address import Address
from lore.bridges.wire import Call, Lost, Unreachable, encoded

PATH = "/mcp"

ANSWER_S = 120.0
"""Longer than the slowest tool takes on a large memory; then the call is given up."""

_AT_ONCE = 16
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_VERSION = "io.modelcontextprotocol/protocolVersion"
_UNPARSABLE, _FAILED = -32700, -32603

Reach = Callable[[], Address | None]


class Bridge:
    """One agent's line to the running Lore; `reach` finds it, and starts it if need be."""

    def __init__(self, reach: Reach, project: str, out: BinaryIO) -> None:
        self._reach = reach
        self._address: Address | None = None
        self._out = out
        self._headers = {"x-lore-project": encoded(project)}
        self._version = ""
        self._writing = threading.Lock()
        self._reaching = threading.Lock()
        self._room = threading.Semaphore(_AT_ONCE)
        self._calls: dict[str, Call] = {}
        self._threads: set[threading.Thread] = set()

    def run(self, lines: BinaryIO) -> None:
        """Carry messages until the agent hangs up, and wait for the answers under way."""
        for line in lines:
            if line.strip():
                self._take(line.strip())
        for thread in list(self._threads):
            thread.join(ANSWER_S)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._refuse(None, _UNPARSABLE, "This line is not JSON.")
            return
        if not isinstance(message, dict):
            self._refuse(None, -32600, "A message is an object; batches are not served.")
        elif "id" in message and "method" in message:
            self._begin(message, line)
        elif message.get("method") == "notifications/cancelled":
            self._cancel(message)

    def _begin(self, message: dict[str, Any], line: bytes) -> None:
        self._room.acquire()
        call = self._calls[_key(message["id"])] = Call()
        thread = threading.Thread(target=self._carry, args=(message, line, call), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _carry(self, message: dict[str, Any], line: bytes, call: Call) -> None:
        try:
            status, body = self._post(call, line, self._headers_of(message))
            self._pass_on(message, status, body)
        except OSError as error:
            if not call.ended:
                self._refuse(message["id"], _FAILED, _told(error))
        finally:
            self._calls.pop(_key(message["id"]), None)
            self._threads.discard(threading.current_thread())
            self._room.release()

    def _post(self, call: Call, line: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a message; one that never left is sent again once Lore has been reached anew."""
        address = self._address or self._find(None)
        try:
            return call.post(address, PATH, line, headers, ANSWER_S)
        except Unreachable:
            return call.post(self._find(address), PATH, line, headers, ANSWER_S)

    def _find(self, former: Address | None) -> Address:
        with self._reaching:
            if self._address is former:
                self._address = self._reach()
            if self._address is None:
                raise Unreachable
            return self._address

    def _headers_of(self, message: dict[str, Any]) -> dict[str, str]:
        """Return what stands in the headers as well as in the message, as the protocol wants."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(_VERSION) if isinstance(meta, dict) else None
        method = str(message["method"])
        headers = dict(self._headers)
        if isinstance(version, str):
            headers["mcp-protocol-version"] = _header(version)
            headers["mcp-method"] = _header(method)
            name = params.get(_NAMED.get(method, ""))
            if isinstance(name, str):
                headers["mcp-name"] = _header(name)
        elif self._version and method != "initialize":
            headers["mcp-protocol-version"] = self._version
        return headers

    def _pass_on(self, message: dict[str, Any], status: int, body: bytes) -> None:
        try:
            answer = json.loads(body) if body.strip() else {}
        except (ValueError, RecursionError):
            answer = {}
        if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
            detail = answer.get("detail") if isinstance(answer, dict) else ""
            self._refuse(message["id"], _FAILED, str(detail or f"Lore answered {status}."))
            return
        result = answer.get("result")
        if message["method"] == "initialize" and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", ""))
        if answer.get("id") is None:
            answer["id"] = message["id"]
            body = json.dumps(answer).encode()
        self._print(body.replace(b"\n", b"").replace(b"\r", b""))

    def _cancel(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        call = self._calls.get(_key(params.get("requestId"))) if isinstance(params, dict) else None
        if call is not None:
            call.end()

    def _refuse(self, id_: object, code: int, text: str) -> None:
        error = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}
        self._print(json.dumps(error).encode())

    def _print(self, line: bytes) -> None:
        with self._writing:
            try:
                self._out.write(line + b"\n")
                self._out.flush()
            except (OSError, ValueError):
                return  # the agent has gone: nobody is left to be told


def _refuse_constant(name: str) -> object:
    """Refuse what Python reads as a number and JSON does not know."""
    raise ValueError(name)


def _key(id_: object) -> str:
    """Return a request's id as it can be looked up: 1 and "1" are two ids."""
    return json.dumps(id_)


def _header(value: str) -> str:
    """Return a value as the protocol writes it in a header: base64 where it is not plain."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    from base64 import b64encode

    return f"=?base64?{b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _told(error: OSError) -> str:
    if isinstance(error, Unreachable):
        return "Lore cannot be reached. 'lore status' and 'lore logs' say more; try again."
    if isinstance(error, Lost):
        return f"No answer from Lore ({error}). It may have been done; look before you repeat it."
    return "Lore cannot be reached."

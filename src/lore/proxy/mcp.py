"""The bridge of MCP: lines on standard input are posted to the running Lore, answers printed.

An agent starts it for every session, so it is quick: it knows JSON-RPC and no more of the
protocol than the headers of HTTP need. What an agent asks first is answered from the greeting that
the home keeps, while Lore may still be starting. Nothing but protocol reaches standard output.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import BinaryIO

from lore.proxy import lines
from lore.proxy.address import Address
from lore.proxy.greeting import INITIALIZE, METHODS, VERSION_FIELD, Greeting, find_answer
from lore.proxy.lines import FAILED, NO_REQUEST, Message, Refused
from lore.proxy.wire import Call, Hung, Lost, Unreachable, encoded

PATH = "/mcp"

ANSWER_S = 120.0
"""Longer than the slowest tool takes on a large memory; then the call is given up."""

LONGEST_LINE = 32_000_000
"""Half of what Lore still reads of a message that it refuses for its length. What is longer would
be cut off while it is sent, and the agent would not be told why."""

_AT_ONCE = 16
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Reach = Callable[[], Address | None]
Greet = Callable[[], Greeting | None]


class Bridge:
    """One agent's line to the running Lore; `reach` finds it, and starts it if need be.

    `greet` finds what that Lore, running or not, is known to answer first. Lines are read whatever
    is under way: more calls than are carried at a time wait for their turn.
    """

    def __init__(
        self, reach: Reach, project: str, out: BinaryIO, greet: Greet = lambda: None
    ) -> None:
        self._reach = reach
        self._greet = greet
        self._address: Address | None = None
        self._out = out
        self._headers = {"x-lore-project": encoded(project)}
        self._version = ""
        self._writing = threading.Lock()
        self._reaching = threading.Lock()
        self._waiting: SimpleQueue[tuple[Message, bytes, Call] | None] = SimpleQueue()
        self._calls: dict[str, Call] = {}
        self._carriers: list[threading.Thread] = []
        self._approach: threading.Thread | None = None

    def run(self, given: BinaryIO) -> None:
        """Carry messages until the agent hangs up, and wait for the answers under way."""
        for line in given:
            if line.strip():
                self._take(line.strip())
        for _ in self._carriers:
            self._waiting.put(None)
        until = time.monotonic() + ANSWER_S
        for carrier in self._carriers:
            carrier.join(max(0.0, until - time.monotonic()))

    def _take(self, line: bytes) -> None:
        try:
            message = lines.read(line)
        except Refused as refused:
            self._refuse(refused.id, refused.code, str(refused))
            return
        if lines.is_request(message) and len(line) > LONGEST_LINE:
            told = f"This message is longer than {LONGEST_LINE:,} bytes."
            self._refuse(message["id"], NO_REQUEST, told)
        elif lines.is_request(message):
            if not self._answer_at_once(message):
                self._begin(message, line)
        elif message.get("method") == "notifications/cancelled":
            self._cancel(message)

    def _answer_at_once(self, message: Message) -> bool:
        """Answer what needs no Lore that runs, and tell whether that could be done."""
        if message["method"] == "ping" and self._version:
            result: Message | None = {}
        elif message["method"] in METHODS:
            greeting = self._greet()
            result = None if greeting is None else find_answer(greeting, message, self._version)
        else:
            return False
        if result is None:
            return False
        self._agree(message, result)
        self._print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
        if self._address is None and self._approach is None:
            self._approach = threading.Thread(target=self._come_near, daemon=True)
            self._approach.start()
        return True

    def _come_near(self) -> None:
        """Have Lore started while the agent makes up its mind; the first call says if it fails."""
        with suppress(Unreachable):
            self._find(None)

    def _begin(self, message: Message, line: bytes) -> None:
        call = self._calls[_key(message["id"])] = Call()
        self._waiting.put((message, line, call))
        if len(self._carriers) < _AT_ONCE:
            carrier = threading.Thread(target=self._carry_all, daemon=True)
            self._carriers.append(carrier)
            carrier.start()

    def _carry_all(self) -> None:
        while (taken := self._waiting.get()) is not None:
            self._carry(*taken)

    def _carry(self, message: Message, line: bytes, call: Call) -> None:
        try:
            status, body = self._post(call, line, self._headers_of(message))
            self._pass_on(message, status, body)
        except OSError as error:
            if not call.ended:
                self._refuse(message["id"], FAILED, _told(error))
        finally:
            self._calls.pop(_key(message["id"]), None)

    def _post(self, call: Call, line: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a message; one that never left is sent again once Lore has been reached anew."""
        address = self._address or self._find(None)
        try:
            return call.post(address, PATH, line, headers, ANSWER_S, while_well=True)
        except Unreachable:
            address = self._find(address)
            return call.post(address, PATH, line, headers, ANSWER_S, while_well=True)

    def _find(self, former: Address | None) -> Address:
        with self._reaching:
            if self._address is former:
                self._address = self._reach()
            if self._address is None:
                raise Unreachable
            return self._address

    def _headers_of(self, message: Message) -> dict[str, str]:
        """Return what stands in the headers as well as in the message, as the protocol wants."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(VERSION_FIELD) if isinstance(meta, dict) else None
        method = str(message["method"])
        headers = dict(self._headers)
        if isinstance(version, str):
            headers["mcp-protocol-version"] = _header(version)
            headers["mcp-method"] = _header(method)
            name = params.get(_NAMED.get(method, ""))
            if isinstance(name, str):
                headers["mcp-name"] = _header(name)
        elif self._version and method != INITIALIZE:
            headers["mcp-protocol-version"] = self._version
        return headers

    def _pass_on(self, message: Message, status: int, body: bytes) -> None:
        try:
            answer = json.loads(body) if body.strip() else {}
        except (ValueError, RecursionError):
            answer = {}
        if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
            detail = answer.get("detail") if isinstance(answer, dict) else ""
            self._refuse(message["id"], FAILED, str(detail or f"Lore answered {status}."))
            return
        self._agree(message, answer.get("result"))
        if answer.get("id") is None:
            answer["id"] = message["id"]
            body = json.dumps(answer).encode()
        self._print(body.replace(b"\n", b"").replace(b"\r", b""))

    def _agree(self, message: Message, result: object) -> None:
        """Remember the version of the protocol that a handshake has settled on."""
        if message["method"] == INITIALIZE and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", ""))

    def _cancel(self, message: Message) -> None:
        params = message.get("params")
        call = self._calls.get(_key(params.get("requestId"))) if isinstance(params, dict) else None
        if call is not None:
            call.end()

    def _refuse(self, id_: object, code: int, text: str) -> None:
        self._print(lines.refusal(id_, code, text))

    def _print(self, line: bytes) -> None:
        with self._writing:
            try:
                self._out.write(line + b"\n")
                self._out.flush()
            except (OSError, ValueError):
                return  # the agent has gone: nobody is left to be told


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
    if isinstance(error, Hung):
        return (
            "Lore runs but does not answer. Go on without memory, and tell the person that"
            " 'lore down --force' ends it; the next call starts it again. What was asked may still"
            " be done: look before you repeat it."
        )
    if isinstance(error, Lost):
        return f"No answer from Lore ({error}). It may have been done; look before you repeat it."
    return "Lore cannot be reached."

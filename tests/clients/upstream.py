"""A model provider on this machine: three wire formats, answers by a script, a log of all said."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.clients import chat_wire, messages_wire, responses_wire
from tests.clients.script import (
    Asked,
    Chosen,
    Refused,
    Reply,
    Scene,
    Speaker,
    Unscripted,
    Wire,
    choose,
)
from tests.clients.usage import PrefixCache, Usage

WIRES = {"messages": messages_wire, "responses": responses_wire, "chat": chat_wire}
PATHS: dict[str, Wire] = {
    "/v1/messages": "messages",
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
}
COUNT_PATH = "/v1/messages/count_tokens"
ANSWERING_PATH = "/scripted/answering"
"""Not a provider's page: it tells who waits for something to be streamed."""

SECRET_HEADERS = {"authorization", "x-api-key", "api-key", "cookie"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what was answered; a cue is there where the script had an answer."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: Json | None
    status: int
    wire: Wire | None = None
    cue: str = ""
    speaker: Speaker = "person"
    step: int = 0
    said: Json | None = None
    reply: Json | None = None
    complete: bool = True
    problem: str = ""

    def as_json(self) -> Json:
        """The exchange as a line of the log."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass
class Upstream:
    """A running provider: its script, and the exchanges it has had."""

    url: str
    scenes: tuple[Scene, ...]
    log: Path | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    cache: PrefixCache = field(default_factory=PrefixCache)
    faults: dict[tuple[str, int], int] = field(default_factory=dict)
    begun: int = 0
    answering: list[str] = field(default_factory=list)
    """The cues of the replies that are being streamed."""

    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> int:
        """Number a request in the order of arrival."""
        with self.lock:
            self.begun += 1
            return self.begun

    def record(self, exchange: Exchange) -> None:
        """Add an exchange to the list and to the log file."""
        with self.lock:
            self.exchanges.append(exchange)
            self.exchanges.sort(key=lambda one: one.number)
            if self.log:
                with self.log.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(exchange.as_json()) + "\n")

    def fault_due(self, chosen: Chosen) -> bool:
        """Tell whether this reply still has to fail, and count it."""
        fault = chosen.reply.fault
        if not fault:
            return False
        with self.lock:
            place = (chosen.scene.cue, chosen.step)
            self.faults[place] = self.faults.get(place, 0) + 1
            return self.faults[place] <= fault.times

    def bill(self, asked: Asked, reply: Reply) -> Usage:
        """Count the tokens of an exchange."""
        with self.lock:
            return self.cache.bill(asked, reply)

    def problems(self) -> list[str]:
        """List what a client did against the rules or outside the script."""
        return [f"{one.number} {one.path}: {one.problem}" for one in self.exchanges if one.problem]

    def strays(self) -> list[str]:
        """List the hosts that a client wanted to reach and could not."""
        return sorted({one.path for one in self.exchanges if one.method == "CONNECT"})


class Conversation(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    upstream: Upstream
    number: int

    def parse_request(self) -> bool:
        """Number the request as soon as it is there."""
        parsed = super().parse_request()
        if parsed and self.path != ANSWERING_PATH:
            self.number = self.upstream.begin()
        return parsed

    def do_HEAD(self) -> None:
        self.note(200)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.headers.get("Upgrade"):
            self.note(426)
            self.send_json(426, {"error": {"message": "Upgrade not supported"}})
        elif self.bare_path == ANSWERING_PATH:
            self.send_json(200, self.upstream.answering)
        elif self.bare_path == "/v1/models":
            self.note(200)
            listed = messages_wire.models()
            self.send_json(200, {"object": "list", **listed})
        else:
            self.note(404, problem="no such page")
            self.send_json(404, messages_wire.error(404, self.path, "none"))

    def do_CONNECT(self) -> None:
        """Refuse what a client wants from the network: this is its proxy as well."""
        self.note(403)
        self.send_json(403, {"error": "this proxy leads nowhere"})
        self.close_connection = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        name = hashlib.sha256(raw).hexdigest()[:20]
        wire = PATHS.get(self.bare_path)
        body: Json = {}
        try:
            body = read_object(raw)
            if self.bare_path == COUNT_PATH:
                self.count_tokens(body)
            elif wire is None:
                self.note(404, body=body, problem="no such door")
                self.send_json(404, messages_wire.error(404, self.path, name))
            else:
                asked = WIRES[wire].read(body)
                self.answer(asked, choose(self.upstream.scenes, asked), body, name)
        except (Refused, Unscripted) as wrong:
            self.note(400, body=body, problem=str(wrong))
            self.send_json(400, WIRES[wire or "messages"].error(400, str(wrong), name))

    def count_tokens(self, body: Json) -> None:
        asked = messages_wire.read({"max_tokens": 1, **body})
        usage = PrefixCache().bill(asked, Reply())
        self.note(200, body=body)
        self.send_json(200, {"input_tokens": usage.input})

    def answer(self, asked: Asked, chosen: Chosen, body: Json, name: str) -> None:
        """Say the chosen reply, or let its fault happen."""
        wire = asked.wire
        told: Json = {
            "body": body,
            "wire": wire,
            "cue": chosen.scene.cue,
            "speaker": chosen.scene.speaker,
            "step": chosen.step,
        }
        fault = chosen.reply.fault if self.upstream.fault_due(chosen) else None
        if fault and not fault.cut_after_events:
            self.note(fault.status, **told)
            wrong_form = WIRES[wire].error(fault.status, fault.message, name)
            self.send_json(fault.status, wrong_form, dict(fault.headers))
            return
        usage = self.upstream.bill(asked, chosen.reply)
        told["reply"] = WIRES[wire].whole(asked, chosen.reply, usage, name)
        told["said"] = WIRES[wire].said(told["reply"])
        headers = {"request-id": f"req_{name}", **dict(chosen.reply.headers)}
        if not asked.stream:
            self.note(200, **told)
            self.send_json(200, told["reply"], headers)
            return
        events = list(WIRES[wire].stream(asked, chosen.reply, usage, name))
        if fault:
            events = events[: fault.cut_after_events]
            last = WIRES[wire].error_event(fault.status, fault.message, name)
            events.append(last if fault.status else b"")
        self.upstream.answering.append(chosen.scene.cue)
        stayed = self.send_events(events[:-1], chosen.reply.pause_s, headers)
        self.upstream.answering.remove(chosen.scene.cue)
        # Noted before the last event: a client may be gone as soon as it has that.
        self.note(200, complete=stayed and not fault, **told)
        self.end_stream(events[-1])

    def send_events(self, events: list[bytes], pause_s: float, headers: dict[str, str]) -> bool:
        """Stream events in chunks; tell whether the client stayed."""
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in events:
                self.wfile.write(chunk(event))
                self.wfile.flush()
                time.sleep(pause_s)
        except OSError:
            return False
        return True

    def end_stream(self, last: bytes) -> None:
        """Send the last event and the end, or break off where there is none."""
        if not last:
            self.close_connection = True
            return
        try:
            self.wfile.write(chunk(last) + b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    @property
    def bare_path(self) -> str:
        return self.path.split("?")[0]

    def note(self, status: int, **told: Any) -> None:
        headers = {
            name.lower(): "hidden" if name.lower() in SECRET_HEADERS else value
            for name, value in self.headers.items()
        }
        told = {"body": None, **told}
        self.upstream.record(
            Exchange(self.number, self.command, self.path, headers, status=status, **told)
        )

    def send_json(self, status: int, said: object, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(said).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on the terminal: the log has it all."""


def read_object(raw: bytes) -> Json:
    try:
        body = json.loads(raw)
    except ValueError as error:
        problem = f"The request body is not valid JSON: {error}"
        raise Refused(problem) from error
    if not isinstance(body, dict):
        problem = "The request body is not an object"
        raise Refused(problem)
    return body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextmanager
def running_upstream(scenes: tuple[Scene, ...], log: Path | None = None) -> Iterator[Upstream]:
    """Run a provider on a free port for as long as the block lasts."""
    upstream = Upstream("", scenes, log)
    handler = type("ThisConversation", (Conversation,), {"upstream": upstream})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    upstream.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A scripted upstream on loopback that speaks Anthropic Messages, OpenAI Chat Completions and
Responses, and Gemini; streaming and not.

It refuses what the real interfaces refuse (rules.py), and counts tokens and cache reads and
writes by the prefix that it was really sent (prefixes.py). What it says is handed in by the test:

    with upstream([Says(Text("Hello.")), Says(Call("Read", {"file_path": "a.py"}))]) as up:
        …  # send requests to up.url; each takes the next reply, and "Understood." when none is left
        assert up.asked[0].tree["messages"] == …  # every request as it came, with what it used
        assert not up.refused  # requests that broke a rule, each with `problem`

The script may be a function instead, which is given the request: `lambda asked: Says(…)`. It is
run in the thread of the upstream. Pieces are Text, Thought (signed; comes back unchanged or not at
all) and Call. Replies other than Says: `Fails(status, kind, told, headers)` in the error shape of
the wire, and `Answers(status, headers, body)` with any bytes. `Says` can wait: `after_s` before
the status, `gap_s` between events, or for `hold` (an Event) at event `hold_at` (-1: before the
status); `pieces_of=1` sends the stream byte by byte. `asked.ended` tells how it went: "whole", or
"left" when the other side hung up. `clock` (seconds) moves the lives of caches; `window_tokens`
is the longest prompt; `up.reply_with(…)` adds to the script while it runs.
It is a real aiohttp server in its own thread, so tests may be synchronous or not.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import brotli
import zstandard
from aiohttp import web

from tests.gateway import prefixes, replies, rules
from tests.gateway.prefixes import Use
from tests.gateway.replies import Call, Piece, Spoken, Text, Thought, Wire
from tests.gateway.rules import Refused, Seen

__all__ = ["Answers", "Asked", "Call", "Fails", "Says", "Text", "Thought", "Upstream", "upstream"]


@dataclass
class Asked:
    """A request as it came: its bytes, what they say, and what became of it."""

    number: int
    method: str
    target: str
    """Path and query as they were sent."""
    headers: list[tuple[str, str]]
    """Names in lower case, in their order."""
    body: bytes
    wire: Wire
    tree: Any = None
    problem: str = ""
    use: Use = field(default_factory=lambda: Use(0))
    ended: Literal["", "whole", "left"] = ""
    connection: int = 0

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str:
        """Return the last header of a name, empty if there is none."""
        return dict(self.headers).get(name, "")


class Says:
    """An answer in the format of whatever wire it is asked on."""

    def __init__(
        self,
        *pieces: Piece | str,
        stop: str = "",
        output_tokens: int = 0,
        after_s: float = 0.0,
        gap_s: float = 0.0,
        hold: threading.Event | None = None,
        hold_at: int = -1,
        pieces_of: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.pieces = tuple(Text(one) if isinstance(one, str) else one for one in pieces)
        self.stop = stop
        self.output_tokens = output_tokens
        self.after_s = after_s
        self.gap_s = gap_s
        self.hold = hold
        self.hold_at = hold_at
        self.pieces_of = pieces_of
        self.headers = headers or {}


@dataclass(frozen=True)
class Fails:
    """An error of the provider."""

    status: int
    kind: str = "api_error"
    told: str = "It did not work."
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """Any bytes."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Reply = Says | Fails | Answers
Script = Iterable[Reply] | Callable[[Asked], Reply]

UNDERSTOOD = Says("Understood.")


class Upstream:
    """The upstream while it is served."""

    def __init__(
        self, script: Script, clock: Callable[[], float], window_tokens: int, least_tokens: int
    ) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self._scripted = script if callable(script) else None
        self._next: deque[Reply] = deque(() if callable(script) else script)
        self._window = window_tokens
        self._seen = Seen()
        self._breakpoints = prefixes.Breakpoints(clock, least_tokens=least_tokens)
        self._automatic = prefixes.Automatic(clock)
        self._numbers = itertools.count(1)

    @property
    def refused(self) -> list[Asked]:
        """Return the requests that broke a rule."""
        return [asked for asked in self.asked if asked.problem]

    @property
    def turns(self) -> list[Asked]:
        """Return the requests that a model would have answered."""
        return [one for one in self.asked if one.wire != "other" and one.method == "POST"]

    def reply_with(self, *more: Reply) -> None:
        """Add to the script."""
        self._next.extend(more)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        asked = _asked(next(self._numbers), request, await request.read())
        self.asked.append(asked)
        try:
            response = await self._answered(request, asked)
        except (asyncio.CancelledError, ConnectionError):
            asked.ended = "left"
            raise
        asked.ended = "whole"
        return response

    async def _answered(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        if asked.wire == "other":
            return self._other(asked)
        try:
            self._check(asked)
        except Refused as error:
            asked.problem = str(error)
            return _failed(asked.wire, Fails(400, "invalid_request_error", str(error)))
        if _counts(asked):
            return web.json_response({"input_tokens": self._length(asked)})
        reply = self._reply_for(asked)
        if not isinstance(reply, Says):
            return _plain(asked.wire, reply)
        asked.use = self._used(asked)
        if asked.use.total > self._window:
            return _failed(asked.wire, _too_long(asked, self._window))
        return await self._say(request, asked, reply)

    def _reply_for(self, asked: Asked) -> Reply:
        if self._scripted is not None:
            return self._scripted(asked)
        return self._next.popleft() if self._next else UNDERSTOOD

    def _check(self, asked: Asked) -> None:
        if not isinstance(asked.tree, dict):
            msg = "The request body is not valid JSON."
            raise Refused(msg)
        try:
            if asked.wire == "anthropic":
                rules.check_anthropic(asked.tree, self._seen, counts_only=_counts(asked))
            else:
                _CHECKS[asked.wire](asked.tree, self._seen)
        except (KeyError, TypeError, AttributeError) as error:
            raise Refused(f"The request is malformed: {error!r}") from error

    def _length(self, asked: Asked) -> int:
        return prefixes.tokens_of(_prompt(asked))

    def _used(self, asked: Asked) -> Use:
        if asked.wire == "anthropic":
            return self._breakpoints.use(asked.tree)
        return self._automatic.use(_model(asked), _prompt(asked))

    async def _say(self, request: web.Request, asked: Asked, says: Says) -> web.StreamResponse:
        spoken = _spoken(asked, says)
        await _wait(says, -1)
        self._remember(spoken)
        headers = {**_usual_headers(asked), **says.headers}
        if not _streams(asked):
            return web.json_response(spoken.whole(), headers=headers)
        kind = "application/json" if spoken.as_list else "text/event-stream; charset=utf-8"
        response = web.StreamResponse(headers={"content-type": kind, **headers})
        await response.prepare(request)
        for number, event in enumerate(spoken.events()):
            await _wait(says, number)
            for piece in _cut(event, says.pieces_of):
                await response.write(piece)
                if says.pieces_of:
                    await asyncio.sleep(0)
        asked.ended = "whole"  # before the last bytes, which whoever waits for it sees
        await response.write_eof()
        return response

    def _remember(self, spoken: Spoken) -> None:
        if spoken.wire == "anthropic":
            rules.remember_anthropic(replies.anthropic_blocks(spoken), self._seen)
        elif spoken.wire == "responses":
            rules.remember_responses(replies.responses_items(spoken), self._seen)
        elif spoken.wire == "gemini":
            rules.remember_gemini(replies.gemini_parts(spoken), self._seen)

    def _other(self, asked: Asked) -> web.Response:
        if asked.method == "HEAD":
            return web.Response(status=200)
        if asked.path.endswith("/models"):
            return web.json_response({"data": [], "object": "list", "has_more": False})
        if self._next and isinstance(self._next[0], Answers):
            return _plain("other", self._next.popleft())  # type: ignore[arg-type]  # just seen
        if self._scripted is not None and isinstance(reply := self._scripted(asked), Answers):
            return _plain("other", reply)
        return _failed("anthropic", Fails(404, "not_found_error", "Not found"))


_CHECKS = {
    "chat": rules.check_chat,
    "responses": rules.check_responses,
    "gemini": rules.check_gemini,
}


def _asked(number: int, request: web.Request, body: bytes) -> Asked:
    headers = [(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in request.raw_headers]
    target = request.raw_path
    path = target.partition("?")[0]
    wire: Wire = "other"
    if request.method == "POST":
        for ending, found in _WIRES.items():
            if path.endswith(ending):
                wire = found
    peer = request.transport.get_extra_info("peername") if request.transport else None
    asked = Asked(number, request.method, target, headers, body, wire)
    asked.connection = peer[1] if peer else 0
    try:
        asked.tree = json.loads(_decoded(body, asked.header("content-encoding")))
    except (ValueError, OSError, brotli.error, zstandard.ZstdError):
        asked.tree = None
    return asked


_WIRES: dict[str, Wire] = {
    "/messages": "anthropic",
    "/messages/count_tokens": "anthropic",
    "/chat/completions": "chat",
    "/responses": "responses",
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
}


def _decoded(body: bytes, encoding: str) -> bytes:
    match encoding:
        case "gzip":
            return gzip.decompress(body)
        case "br":
            return bytes(brotli.decompress(body))
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


def _counts(asked: Asked) -> bool:
    return asked.path.endswith("/count_tokens")


def _streams(asked: Asked) -> bool:
    if asked.wire == "gemini":
        return ":stream" in asked.path
    return bool(asked.tree.get("stream"))


def _model(asked: Asked) -> str:
    if asked.wire == "gemini":
        return asked.path.rpartition("/")[2].partition(":")[0]
    return str(asked.tree["model"])


def _prompt(asked: Asked) -> str:
    """Return a prompt as one text, in the order in which it is read."""
    tree = asked.tree
    if asked.wire == "anthropic":
        return "".join(one.text for one in prefixes.stretches_of(tree))
    order = ("tools", "instructions", "systemInstruction", "system_instruction")
    said = tree.get("messages") or tree.get("input") or tree.get("contents")
    parts = [*(tree.get(key) for key in order), *(said if isinstance(said, list) else [said])]
    return "".join(prefixes.canonical(part) for part in parts if part)


def _spoken(asked: Asked, says: Says) -> Spoken:
    mark = {"anthropic": "msg_", "chat": "chatcmpl-", "responses": "resp_", "gemini": ""}
    digest = hashlib.sha256(f"{asked.number}".encode() + asked.body).hexdigest()[:20]
    length = sum(len(str(piece)) for piece in says.pieces) // prefixes.CHARS_PER_TOKEN
    options = asked.tree.get("stream_options") or {}
    return Spoken(
        asked.wire,
        says.pieces,
        mark[asked.wire] + digest,
        _model(asked),
        asked.use,
        says.output_tokens or max(1, length),
        says.stop,
        with_usage=bool(options.get("include_usage")),
        as_list=asked.wire == "gemini" and "alt=sse" not in asked.target,
    )


def _usual_headers(asked: Asked) -> dict[str, str]:
    if asked.wire == "anthropic":
        return {
            "request-id": f"req_{asked.number:08}",
            "anthropic-ratelimit-unified-status": "allowed",
            "anthropic-ratelimit-unified-5h-utilization": "0.42",
            "anthropic-ratelimit-unified-5h-reset": "1790003600",
        }
    if asked.wire == "gemini":
        return {"server": "scaffolding on HTTPServer2", "vary": "Origin"}
    return {"x-request-id": f"req_{asked.number:08}", "x-ratelimit-remaining-tokens": "149984"}


def _too_long(asked: Asked, most: int) -> Fails:
    length = asked.use.total
    told = {
        "anthropic": f"prompt is too long: {length} tokens > {most} maximum",
        "gemini": f"The input token count ({length}) exceeds the maximum number of tokens allowed"
        f" ({most}).",
    }
    usual = f"This model's maximum context length is {most} tokens. However, your messages resulted"
    kind = "invalid_request_error"
    return Fails(400, kind, told.get(asked.wire, f"{usual} in {length} tokens."))


def _plain(wire: Wire, reply: Fails | Answers) -> web.Response:
    if isinstance(reply, Fails):
        return _failed(wire, reply)
    return web.Response(status=reply.status, headers=reply.headers, body=reply.body)


def _failed(wire: Wire, fails: Fails) -> web.Response:
    error: dict[str, Any] = {"type": fails.kind, "message": fails.told}
    tree: dict[str, Any] = {"error": {**error, "param": None, "code": None}}
    if wire in ("anthropic", "other"):
        tree = {"type": "error", "error": error, "request_id": "req_failed"}
    elif wire == "gemini":
        code = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}.get(fails.status, "INTERNAL")
        tree = {"error": {"code": fails.status, "message": fails.told, "status": code}}
    return web.json_response(tree, status=fails.status, headers=fails.headers)


async def _wait(says: Says, number: int) -> None:
    if number < 0 and says.after_s:
        await asyncio.sleep(says.after_s)
    if number > 0 and says.gap_s:
        await asyncio.sleep(says.gap_s)
    if says.hold is not None and number == says.hold_at:
        while not says.hold.is_set():
            await asyncio.sleep(0.01)


def _cut(event: bytes, size: int) -> Iterator[bytes]:
    step = size or len(event)
    for at in range(0, len(event), step):
        yield event[at : at + step]


@contextmanager
def upstream(
    script: Script = (),
    *,
    clock: Callable[[], float] = time.monotonic,
    window_tokens: int = 200_000,
    least_tokens: int = prefixes.LEAST_TOKENS,
) -> Iterator[Upstream]:
    """Serve until the block ends."""
    served = Upstream(script, clock, window_tokens, least_tokens)
    ready, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", served.serve)
        runner = web.AppRunner(
            app,
            handler_cancellation=True,
            auto_decompress=False,
            max_line_size=2**20,
            max_field_size=2**20,
            access_log=None,
            shutdown_timeout=0.1,
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        served.url = f"http://127.0.0.1:{port}"
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield served
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)
        assert not thread.is_alive()

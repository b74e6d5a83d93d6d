"""The scripted upstream: a real HTTP server on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import brotli
import zstandard
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage

from tests.upstream import prompt_cache
from tests.upstream.anthropic import error_document, models_document
from tests.upstream.apis import APIS, api_of, check_request, respond
from tests.upstream.prompt_cache import PromptUsage
from tests.upstream.script import (
    ApiName,
    History,
    ModelError,
    ModelReply,
    RawResponse,
    ReceivedRequest,
    Rejected,
    Response,
    Script,
    ScriptedResponse,
    Unscripted,
)

DEFAULT_REPLY = ModelReply("Understood.")

STREAMING_PATH = "/scripted/streaming"
"""Not a provider's page: it lists the cues of the replies that are being streamed."""


class Upstream:
    """A running upstream: its script, and the requests it has received."""

    def __init__(
        self, script: Script, clock: Callable[[], float], window_tokens: int, min_tokens: int
    ) -> None:
        self.url = ""
        self.requests: list[ReceivedRequest] = []
        self._script = script if callable(script) else None
        self._replies: deque[ScriptedResponse] = deque(() if callable(script) else script)
        self._window_tokens = window_tokens
        self._history = History()
        self._breakpoint_cache = prompt_cache.BreakpointCache(clock, min_tokens=min_tokens)
        self._automatic_cache = prompt_cache.AutomaticCache(clock)
        self._numbers = itertools.count(1)

    @property
    def rejected(self) -> list[ReceivedRequest]:
        """Return the requests that broke a rule."""
        return [request for request in self.requests if request.problem]

    @property
    def model_requests(self) -> list[ReceivedRequest]:
        """Return the requests that a model would have answered."""
        return [one for one in self.requests if one.api != "other" and one.method == "POST"]

    def problems(self) -> list[str]:
        """List what clients did against the rules, outside the script, or at unknown paths."""
        return [
            f"{one.number} {one.target}: {one.problem or 'no such page'}"
            for one in self.requests
            if one.problem or one.status == 404
        ]

    def blocked_hosts(self) -> list[str]:
        """List the hosts that clients wanted to reach through this server as their proxy."""
        return sorted({one.target for one in self.requests if one.method == "CONNECT"})

    def reply_with(self, *replies: ScriptedResponse) -> None:
        """Add to the script."""
        self._replies.extend(replies)

    async def serve(self, http_request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if http_request.path == STREAMING_PATH:
            streaming = [one.cue for one in self.requests if one.response and not one.outcome]
            return web.json_response(streaming)
        number = next(self._numbers)
        body = b"" if http_request.method == "CONNECT" else await http_request.read()
        request = _receive(number, http_request, body)
        self.requests.append(request)
        try:
            response = await self._answer(http_request, request)
        except (asyncio.CancelledError, ConnectionError):
            request.outcome = request.outcome or "disconnected"
            raise
        request.status = response.status
        request.outcome = request.outcome or "complete"
        return response

    async def _answer(
        self, http_request: web.BaseRequest, request: ReceivedRequest
    ) -> web.StreamResponse:
        if request.api == "other":
            return _page(request) or self._answer_other(request)
        try:
            check_request(
                request.api, request.json, self._history, counts_only=request.counts_tokens
            )
            if request.counts_tokens:
                return web.json_response({"input_tokens": _count_tokens(request)})
            reply = self._next_reply(request)
        except (Rejected, Unscripted) as error:
            request.problem = str(error)
            return _error(request.api, ModelError(400, message=str(error)))
        if not isinstance(reply, ModelReply):
            return _fixed_response(request.api, reply)
        request.usage = self._count_usage(request, reply)
        if reply.input_tokens is None and request.usage.total > self._window_tokens:
            message = APIS[request.api].too_long_message(request.usage.total, self._window_tokens)
            return _error(request.api, ModelError(400, message=message))
        return await self._send_reply(http_request, request, reply)

    def _next_reply(self, request: ReceivedRequest) -> ScriptedResponse:
        if self._script is not None:
            reply = self._script(request)
        else:
            reply = self._replies.popleft() if self._replies else DEFAULT_REPLY
        fault = reply.fault if isinstance(reply, ModelReply) else None
        if fault and not fault.cut_after_events:
            return ModelError(fault.status, message=fault.message, headers=dict(fault.headers))
        return reply

    def _count_usage(self, request: ReceivedRequest, reply: ModelReply) -> PromptUsage:
        if reply.input_tokens is not None:
            fresh = min(reply.input_tokens, 12)
            return PromptUsage(fresh, reply.input_tokens - fresh)
        if request.api == "anthropic":
            return self._breakpoint_cache.record(request.json)
        text = APIS[request.api].prompt_text(request.json)
        return self._automatic_cache.record(request.model, text)

    async def _send_reply(
        self, http_request: web.BaseRequest, request: ReceivedRequest, reply: ModelReply
    ) -> web.StreamResponse:
        api = APIS[request.api]
        response = _response(request, reply)
        await _wait(reply, -1)
        api.remember(response, self._history)
        request.response = response
        headers = {**api.headers(request), **reply.headers}
        if not request.streams:
            return web.json_response(api.response_document(response), headers=headers)
        kind = "application/json" if response.as_list else "text/event-stream; charset=utf-8"
        http_response = web.StreamResponse(headers={"content-type": kind, **headers})
        await http_response.prepare(http_request)
        events = list(api.response_events(response))
        for number, event in enumerate(events[: _cut_at(reply, len(events))]):
            await _wait(reply, number)
            if number == len(events) - 1:
                request.outcome = (
                    "complete"  # a client may hang up as soon as it has the last event
                )
            for chunk in _chunks(event, reply.chunk_bytes):
                await http_response.write(chunk)
                if reply.chunk_bytes:
                    await asyncio.sleep(0)
        if reply.fault:
            request.outcome = "cut"
            await _cut(http_request, http_response, request.api, reply)
        await http_response.write_eof()
        return http_response

    def _answer_other(self, request: ReceivedRequest) -> web.Response:
        reply = self._replies[0] if self._replies else None
        if self._script is not None:
            with suppress(Unscripted):
                reply = self._script(request)
        if not isinstance(reply, RawResponse):
            return _error("other", ModelError(404, message="Not found"))
        if self._replies:
            self._replies.popleft()
        return _fixed_response("other", reply)


def _page(request: ReceivedRequest) -> web.Response | None:
    """Answer a request that needs no script."""
    if request.method == "CONNECT":
        response = web.json_response({"error": "this proxy leads nowhere"}, status=403)
        response.force_close()
        return response
    if request.method == "HEAD":
        return web.Response(status=200)
    if request.header("upgrade"):
        return web.json_response({"error": {"message": "Upgrade not supported"}}, status=426)
    return web.json_response(models_document()) if request.path.endswith("/models") else None


def _receive(number: int, http_request: web.BaseRequest, body: bytes) -> ReceivedRequest:
    headers = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in http_request.raw_headers
    ]
    target = http_request.raw_path
    is_post = http_request.method == "POST"
    api = api_of(target.partition("?")[0]) if is_post else "other"
    peer = http_request.transport.get_extra_info("peername") if http_request.transport else None
    request = ReceivedRequest(number, http_request.method, target, headers, body, api)
    request.connection = peer[1] if peer else 0
    try:
        request.json = json.loads(_decompress(body, request.header("content-encoding")))
    except (ValueError, OSError, brotli.error, zstandard.ZstdError):
        request.json = None
    return request


def _decompress(body: bytes, encoding: str) -> bytes:
    match encoding:
        case "gzip":
            return gzip.decompress(body)
        case "br":
            return bytes(brotli.decompress(body))
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


def _count_tokens(request: ReceivedRequest) -> int:
    return prompt_cache.count_tokens(APIS[request.api].prompt_text(request.json))


def _response(request: ReceivedRequest, reply: ModelReply) -> Response:
    digest = hashlib.sha256(f"{request.number}".encode() + request.body).hexdigest()[:20]
    chars = sum(len(str(part)) for part in reply.parts)
    return respond(
        request.api,
        reply,
        request.json,
        id=APIS[request.api].ID_PREFIX + digest,
        model=request.model,
        usage=request.usage,
        output_tokens=reply.output_tokens or max(1, chars // prompt_cache.CHARS_PER_TOKEN),
        as_list=request.api == "gemini" and "alt=sse" not in request.target,
    )


def _fixed_response(api: ApiName, reply: ScriptedResponse) -> web.Response:
    if isinstance(reply, ModelError):
        return _error(api, reply)
    assert isinstance(reply, RawResponse)
    return web.Response(status=reply.status, headers=reply.headers, body=reply.body)


def _error(api: ApiName, error: ModelError) -> web.Response:
    write = error_document if api == "other" else APIS[api].error_document
    return web.json_response(write(error), status=error.status, headers=error.headers)


async def _wait(reply: ModelReply, number: int) -> None:
    if number < 0 and reply.delay_s:
        await asyncio.sleep(reply.delay_s)
    if number > 0 and reply.pause_s:
        await asyncio.sleep(reply.pause_s)
    if reply.hold is not None and number == reply.hold_at:
        while not reply.hold.is_set():
            await asyncio.sleep(0.01)


def _cut_at(reply: ModelReply, events: int) -> int:
    return reply.fault.cut_after_events if reply.fault else events


async def _cut(
    http_request: web.BaseRequest, response: web.StreamResponse, api: ApiName, reply: ModelReply
) -> None:
    """Send an error inside the stream, or hang up."""
    assert reply.fault
    if reply.fault.status:
        error = ModelError(reply.fault.status, message=reply.fault.message)
        await response.write(APIS[api].error_event(error))
    elif http_request.transport:
        http_request.transport.close()


def _chunks(event: bytes, size: int) -> Iterator[bytes]:
    step = size or len(event)
    for at in range(0, len(event), step):
        yield event[at : at + step]


@contextmanager
def running_upstream(
    script: Script = (),
    *,
    clock: Callable[[], float] = time.monotonic,
    window_tokens: int = 200_000,
    min_tokens: int = prompt_cache.MIN_TOKENS,
) -> Iterator[Upstream]:
    """Run an upstream on a free port until the block ends."""
    upstream = Upstream(script, clock, window_tokens, min_tokens)
    is_ready, is_stopping = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loops.append(loop)

        def make_request(
            message: RawRequestMessage,
            payload: StreamReader,
            protocol: web.RequestHandler,
            writer: AbstractStreamWriter,
            task: asyncio.Task[None],
        ) -> web.BaseRequest:
            return web.BaseRequest(
                message, payload, protocol, writer, task, loop, client_max_size=2**30
            )

        # No routes: as a proxy it also receives targets that are no paths.
        server = web.Server(
            upstream.serve,
            request_factory=make_request,
            handler_cancellation=True,
            auto_decompress=False,
            max_line_size=2**20,
            max_field_size=2**20,
            access_log=None,
        )
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        is_ready.set()
        await is_stopping.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert is_ready.wait(30)
    try:
        yield upstream
    finally:
        loops[0].call_soon_threadsafe(is_stopping.set)
        thread.join(10)
        assert not thread.is_alive()

"""The gateway as an ASGI app: forwards requests to upstreams, and streams responses back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import aiohttp
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from lore import telemetry
from lore.errors import InvalidInput, ProviderError
from lore.gateway import connection_owner, http_body, request_head, upstream
from lore.gateway.observer import SafeObserver
from lore.gateway.plugin_protocol import (
    LocalResponse,
    RequestPlan,
    RequestPlugin,
    error_response,
    unknown_path_response,
)
from lore.gateway.request_head import RequestHead, Upstreams
from lore.gateway.request_planner import (
    DEGRADED_HEADER,
    REQUEST_DEADLINE_S,
    RequestPlanner,
)
from lore.gateway.upstream import Body, UpstreamClient, send_local_response
from lore.records import AccessScope
from lore.records.gateway import GatewayStats
from lore.tools.tool import find_grant

log = logging.getLogger("lore.gateway")

_NO_KEY = "Requests from other users or machines need the header x-lore-key."
_NARROW_KEY = "This access key lacks the scopes read and write."
_OWNER_UNKNOWN = "Lore has too many open files to identify the user of this request. Try again."
_LORE_KEY = "This is a Lore access key, not a provider key; it is not forwarded."
_NO_SOCKETS = "The gateway supports HTTP only, not WebSocket."
_REQUIRED_SCOPES: tuple[AccessScope, ...] = ("read", "write")
"""Scopes of a key: the gateway puts memory into prompts, and records turns."""

_CLOSE = (("connection", "close"),)


class Gateway:
    """A proxy to every upstream; without a plugin, all bytes pass unchanged.

    It stands behind a middleware that checks Host and Origin and reads `x-lore-key`. Without such a
    key, only this user's own programs on this machine are served. `degraded` returns why there is
    no memory at all, and every response says it.
    """

    def __init__(  # noqa: PLR0913 - each limit and part by its name
        self,
        upstreams: Upstreams,
        *,
        plugin: RequestPlugin | None = None,
        max_bytes: int = 64_000_000,
        owner: connection_owner.Owner | None = None,
        within_s: float = REQUEST_DEADLINE_S,
        first_within_s: float = 0.0,
        stats: GatewayStats | None = None,
        degraded: Callable[[], str] | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._plugin = plugin
        self._max_bytes = max_bytes
        self._owner = owner
        self._within_s, self._first_within_s = within_s, first_within_s
        self._stats = stats
        self._degraded = degraded
        self._upstream_client: UpstreamClient | None = None
        self._planner: RequestPlanner | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within this context."""
        self._upstream_client = UpstreamClient()
        if self._plugin is not None:
            self._planner = RequestPlanner(
                self._plugin, self._within_s, self._stats, first_within_s=self._first_within_s
            )
        try:
            yield
        finally:
            if self._planner is not None:
                await self._planner.close()
            await self._upstream_client.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        head = RequestHead.of(scope)
        if not telemetry.is_on():
            await self._answer(scope, head, receive, send)
            return
        attributes = {telemetry.METHOD: head.method, "lore.api": head.api or "other"}
        name = f"gateway {head.api or 'other'}"
        with telemetry.span(name, attributes, kind="server", headers=head.headers) as span:
            await self._answer(scope, head, receive, telemetry.watch_status(send, span))

    async def _answer(self, scope: Scope, head: RequestHead, receive: Receive, send: Send) -> None:
        try:
            refusal = await self._refusal(scope, head)
            if refusal is not None:
                await send_local_response(refusal, send)
            else:
                await self._serve(head, receive, send)
        except HTTPException as error:
            response = error_response(head.provider, error.status_code, error.detail)
            await send_local_response(response, send, _CLOSE)
        except ClientDisconnect:
            return

    async def _refusal(self, scope: Scope, head: RequestHead) -> LocalResponse | None:
        """Return the response to a request that is not forwarded."""
        if head.method == "HEAD" and head.target == "/":
            return LocalResponse(200, (), b"")
        if invalid := self._invalid(head):
            return invalid
        if unauthorized := await self._unauthorized(scope, head):
            return unauthorized
        if "websocket" in head.headers.get("upgrade", "").lower():
            return error_response(head.provider, 426, _NO_SOCKETS)
        if self._upstreams.is_openai and not head.is_for_provider:
            return unknown_path_response(head.path)
        return None

    async def _unauthorized(self, scope: Scope, head: RequestHead) -> LocalResponse | None:
        grant = find_grant(scope)
        if grant is not None:
            is_allowed = grant.allows(*_REQUIRED_SCOPES)
            return None if is_allowed else error_response(head.provider, 403, _NARROW_KEY)
        try:
            is_own = await connection_owner.is_own_user(scope, self._owner)
        except OSError:
            return error_response(head.provider, 503, _OWNER_UNKNOWN)
        return None if is_own else error_response(head.provider, 401, _NO_KEY)

    def _invalid(self, head: RequestHead) -> LocalResponse | None:
        """Return the response to a request that no upstream may see, whoever sends it."""
        try:
            self._upstreams.address(head.provider, head.target)
        except InvalidInput as error:
            return error_response(head.provider, 400, f"Lore: {error}")
        if request_head.has_lore_key(head.raw_headers, head.target):
            return error_response(head.provider, 401, _LORE_KEY)
        return None

    async def _serve(self, head: RequestHead, receive: Receive, send: Send) -> None:
        body_is_in = asyncio.Event()
        if head.api:
            announced = head.headers.get("content-length", "")
            body: Body | None = await http_body.read_body(receive, announced, self._max_bytes)
            body_is_in.set()
        else:
            body = _stream_body(head, receive, body_is_in)
        await upstream.while_present(self._exchange(head, body, send), receive, body_is_in)

    async def _exchange(self, head: RequestHead, body: Body | None, send: Send) -> None:
        """Plan a request, forward it, and report the outcome to its observer."""
        plan, observer = RequestPlan(), SafeObserver(None)
        if self._planner is not None and isinstance(body, bytes):
            plan = await self._planner.plan(head.incoming(body, self._max_bytes))
            observer = self._planner.observe(
                plan.observer, len(body), ends_quickly=plan.ends_quickly
            )
        elif self._planner is not None and (head.may_cost or head.background_response_id):
            plan = await self._planner.passthrough(head.incoming(b"", self._max_bytes))
            observer = self._planner.observe(plan.observer)
        if self._degraded is not None:
            plan = replace(plan, headers=(*plan.headers, (DEGRADED_HEADER, self._degraded())))
        try:
            await self._forward(head, body, plan, observer, send)
        finally:
            observer.end("aborted")

    async def _forward(
        self,
        head: RequestHead,
        body: Body | None,
        plan: RequestPlan,
        observer: SafeObserver,
        send: Send,
    ) -> None:
        """Send a request upstream and stream its response to the client."""
        if plan.answer is not None:
            # A body that is still to come is not waited for.
            close = () if isinstance(body, bytes | None) else _CLOSE
            await send_local_response(plan.answer, send, (*plan.headers, *close))
            observer.end("complete")
            return
        if plan.delay_s:
            await asyncio.sleep(plan.delay_s)
        is_changed = plan.body is not None
        call = plan.call
        if call is not None:
            call.begin()
        ask = partial(self._ask, head, plan, is_changed=True)
        try:
            response = await self._ask(
                head, plan, plan.body if is_changed else body, is_changed=is_changed
            )
            try:
                is_complete = await self._stream(response, plan, observer, send, ask)
            finally:
                response.close()
                if call is not None:
                    call.finish(response.status)
            observer.end("complete" if is_complete else "failed")
        except ProviderError as error:
            observer.end("failed")
            failure = error_response(head.provider, 502, f"Lore: {error}")
            await send_local_response(failure, send, plan.headers)

    async def _stream(
        self,
        response: aiohttp.ClientResponse,
        plan: RequestPlan,
        observer: SafeObserver,
        send: Send,
        ask: upstream.Ask,
    ) -> bool:
        interceptor = plan.interceptor if upstream.can_rewrite(response) else None
        observer.begin(response.status, upstream.response_headers(response))
        start = partial(_response_start, plan)
        if interceptor is None or self._planner is None:
            await send(start(response, rewritten=False))
            return await upstream.stream_unchanged(response, send, observer)
        return await upstream.stream_rewritten(
            response, send, start, observer, interceptor, ask, self._planner.run_tool_loop
        )

    async def _ask(
        self, head: RequestHead, plan: RequestPlan, body: Body | None, *, is_changed: bool
    ) -> aiohttp.ClientResponse:
        assert self._upstream_client is not None
        is_read = plan.interceptor is not None or (plan.observer is not None and plan.reads)
        headers = request_head.upstream_headers(
            head.raw_headers, identity=is_read, changed=is_changed
        )
        if not isinstance(body, bytes | None) and "content-length" in head.headers:
            headers.append(("content-length", head.headers["content-length"]))
        address = self._upstreams.address(head.provider, head.target)
        return await self._upstream_client.send(head.method, address, headers, body)


def _response_start(
    plan: RequestPlan, response: aiohttp.ClientResponse, *, rewritten: bool
) -> Message:
    """Return the status and headers of an upstream response for the client."""
    headers = request_head.client_headers(response.raw_headers, rewritten=rewritten)
    headers += [(name.encode(), value.encode("latin-1")) for name, value in plan.headers]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


def _stream_body(head: RequestHead, receive: Receive, body_is_in: asyncio.Event) -> Body | None:
    """Return a body that is sent upstream while it arrives."""
    if not head.has_body:
        body_is_in.set()
        return None

    async def stream() -> AsyncIterator[bytes]:
        async for chunk in http_body.iter_body(receive):
            yield chunk
        body_is_in.set()

    return stream()

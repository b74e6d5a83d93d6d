"""The gateway as an app: each request goes to its upstream, and the answer to its client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import aiohttp
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from lore.errors import InvalidInput, ProviderError
from lore.gateway import bodies, peers, streaming
from lore.gateway import headers as heads
from lore.gateway.exchanges import Answer, Incoming, Prepared, Provider, Turning, Wire
from lore.gateway.forwarding import Body, Forwarding
from lore.gateway.preparing import DEGRADED, WITHIN_S, Preparing, is_unread
from lore.gateway.refusals import refusal
from lore.gateway.routing import Upstreams, fetched_by, may_cost, provider_of, spelled, wire_of
from lore.gateway.streaming import answer_with
from lore.gateway.watching import Watched
from lore.memory.passing import Passing
from lore.records import AccessScope
from lore.tools.callers import find_grant

log = logging.getLogger("lore.gateway")

_NO_KEY = (
    "This Lore is another user's, or is asked from another machine: header x-lore-key is needed."
)
_NARROW_KEY = "This key does not open the gateway."
_NOT_TOLD = "Lore has too much open to tell whose request this is: try again."
_OWN_KEY = "A key of Lore is no key of a provider, and is not passed on."
_NO_SOCKETS = "Lore speaks HTTP here, not WebSocket."
_NEEDED: tuple[AccessScope, ...] = ("read", "write")
"""What a key must open: memory is put into prompts, and what is said is recorded."""

_CLOSING = (("connection", "close"),)

WELL = Answer(200, (), b"")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as far as its head tells."""

    method: str
    target: str
    path: str
    """In the one spelling that is looked up; the target goes on as it came."""
    wire: Wire
    provider: Provider
    raw_headers: list[tuple[bytes, bytes]]
    headers: dict[str, str]

    @classmethod
    def of(cls, scope: Scope) -> Asked:
        """Read the head of a request."""
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        plain = spelled(path)
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        told = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        return cls(
            scope["method"],
            f"{path}?{query}" if query else path,
            plain,
            wire_of(scope["method"], plain),
            provider_of(plain, told),
            headers,
            told,
        )

    @property
    def has_body(self) -> bool:
        """Tell whether a body comes with it."""
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"

    @property
    def may_cost(self) -> bool:
        """Tell whether a provider may charge for it, though it is on no wire that is read."""
        return may_cost(self.method, self.path)

    @property
    def fetched_by(self) -> str:
        """Return the id of the answer that it asks for, if that was written in the background."""
        return fetched_by(self.method, self.path)

    def incoming(self, body: bytes, most_bytes: int) -> Incoming:
        """Return what memory is shown of it."""
        _, _, query = self.target.partition("?")
        return Incoming(
            self.wire,
            self.path,
            heads.query_to_show(query),
            heads.to_show(self.headers),
            body,
            most_bytes,
            self.provider,
            self.fetched_by,
        )


class Gateway:
    """A proxy to every upstream; without a turning, all bytes pass as they are.

    It stands behind a gate that checks Host and Origin and reads `x-lore-key`. Without such a key,
    only this user's own programs on this machine may pass. `degraded` says why there is no memory
    at all, and every answer tells it.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        *,
        turning: Turning | None = None,
        most_bytes: int = 64_000_000,
        owner: peers.Owner | None = None,
        within_s: float = WITHIN_S,
        passing: Passing | None = None,
        degraded: Callable[[], str] | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._turning = turning
        self._most_bytes = most_bytes
        self._owner = owner
        self._within_s = within_s
        self._passing = passing
        self._degraded = degraded
        self._forwarding: Forwarding | None = None
        self._preparing: Preparing | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within this context."""
        self._forwarding = Forwarding()
        if self._turning is not None:
            self._preparing = Preparing(self._turning, self._within_s, self._passing)
        try:
            yield
        finally:
            if self._preparing is not None:
                await self._preparing.close()
            await self._forwarding.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        asked = Asked.of(scope)
        try:
            refused = await self._refused(scope, asked)
            if refused is not None:
                await answer_with(refused, send)
            else:
                await self._serve(asked, receive, send)
        except HTTPException as error:
            answer = refusal(asked.provider, error.status_code, error.detail)
            await answer_with(answer, send, _CLOSING)
        except ClientDisconnect:
            return

    async def _refused(self, scope: Scope, asked: Asked) -> Answer | None:
        """Return the answer to what goes no further."""
        if asked.method == "HEAD" and asked.target == "/":
            return WELL
        if misled := self._misled(asked):
            return misled
        if unknown := await self._unknown(scope, asked):
            return unknown
        if "websocket" in asked.headers.get("upgrade", "").lower():
            return refusal(asked.provider, 426, _NO_SOCKETS)
        return None

    async def _unknown(self, scope: Scope, asked: Asked) -> Answer | None:
        """Return the answer to who may not pass, or cannot be told from those who may."""
        grant = find_grant(scope)
        if grant is not None:
            may = grant.allows(*_NEEDED)
            return None if may else refusal(asked.provider, 403, _NARROW_KEY)
        try:
            own = await peers.is_own(scope, self._owner)
        except OSError:
            return refusal(asked.provider, 503, _NOT_TOLD)
        return None if own else refusal(asked.provider, 401, _NO_KEY)

    def _misled(self, asked: Asked) -> Answer | None:
        """Return the answer to what no upstream may see, whoever asks."""
        try:
            self._upstreams.address(asked.provider, asked.target)
        except InvalidInput as error:
            return refusal(asked.provider, 400, f"Lore: {error}")
        if heads.shows_key_of_lore(asked.raw_headers, asked.target):
            return refusal(asked.provider, 401, _OWN_KEY)
        return None

    async def _serve(self, asked: Asked, receive: Receive, send: Send) -> None:
        is_in = asyncio.Event()
        if asked.wire:
            announced = asked.headers.get("content-length", "")
            body: Body | None = await bodies.whole(receive, announced, self._most_bytes)
            is_in.set()
        else:
            body = _passing(asked, receive, is_in)
        await streaming.while_present(self._exchange(asked, body, send), receive, is_in)

    async def _exchange(self, asked: Asked, body: Body | None, send: Send) -> None:
        prepared, watched = Prepared(), Watched(None)
        if self._preparing is not None and isinstance(body, bytes):
            incoming = asked.incoming(body, self._most_bytes)
            prepared = await self._preparing.prepare(incoming)
            watched = self._preparing.watch(prepared.observer, len(body))
        elif self._preparing is not None and (asked.may_cost or asked.fetched_by):
            prepared = await self._preparing.admit(asked.incoming(b"", self._most_bytes))
            watched = self._preparing.watch(prepared.observer)
        if self._degraded is not None:
            told = (*prepared.headers, (DEGRADED, self._degraded()))
            prepared = replace(prepared, headers=told)
        try:
            await self._forward(asked, body, prepared, watched, send)
        finally:
            watched.end("aborted")

    async def _forward(
        self, asked: Asked, body: Body | None, prepared: Prepared, watched: Watched, send: Send
    ) -> None:
        """Ask upstream and pass on its answer; who watches is told how it ended."""
        if prepared.answer is not None:
            # A body that is still to come is not waited for.
            closing = () if isinstance(body, bytes | None) else _CLOSING
            await answer_with(prepared.answer, send, (*prepared.headers, *closing))
            watched.end("complete")
            return
        if prepared.delay_s:
            await asyncio.sleep(prepared.delay_s)
        changed = prepared.body is not None
        ask = partial(self._ask, asked, prepared, changed=True)
        try:
            response = await self._ask(
                asked, prepared, prepared.body if changed else body, changed=changed
            )
            try:
                ended = await self._pass_on(response, prepared, watched, send, ask)
            finally:
                response.close()
            watched.end("complete" if ended else "failed")
        except ProviderError as error:
            watched.end("failed")
            answer = refusal(asked.provider, 502, f"Lore: {error}")
            await answer_with(answer, send, prepared.headers)

    async def _pass_on(
        self,
        response: aiohttp.ClientResponse,
        prepared: Prepared,
        watched: Watched,
        send: Send,
        ask: streaming.Ask,
    ) -> bool:
        relay = prepared.relay if streaming.can_splice(response) else None
        watched.begin(response.status, streaming.told(response))
        head = partial(_head, prepared)
        if relay is None or self._preparing is None:
            await send(head(response, spliced=False))
            return await streaming.pass_on(response, send, watched)
        think = partial(self._preparing.think, "splice")
        return await streaming.splice_on(response, send, head, watched, relay, ask, think)

    async def _ask(
        self, asked: Asked, prepared: Prepared, body: Body | None, *, changed: bool
    ) -> aiohttp.ClientResponse:
        assert self._forwarding is not None
        headers = heads.for_upstream(
            asked.raw_headers, identity=not is_unread(prepared), changed=changed
        )
        if not isinstance(body, bytes | None) and "content-length" in asked.headers:
            headers.append(("content-length", asked.headers["content-length"]))
        address = self._upstreams.address(asked.provider, asked.target)
        return await self._forwarding.ask(asked.method, address, headers, body)


def _head(prepared: Prepared, response: aiohttp.ClientResponse, *, spliced: bool) -> Message:
    """Return the head of an upstream's answer as the client is given it."""
    headers = heads.for_client(response.raw_headers, spliced=spliced)
    headers += [(name.encode(), value.encode("latin-1")) for name, value in prepared.headers]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


def _passing(asked: Asked, receive: Receive, is_in: asyncio.Event) -> Body | None:
    """Return a body that is sent on while it comes."""
    if not asked.has_body:
        is_in.set()
        return None

    async def passing() -> AsyncIterator[bytes]:
        async for piece in bodies.pieces(receive):
            yield piece
        is_in.set()

    return passing()

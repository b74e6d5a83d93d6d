"""Server-sent events: one poller of the database tells all clients which tables changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lore.errors import LoreError
from lore.http import middleware
from lore.http.endpoint import to_json
from lore.memory import Memory
from lore.records import ChangedTable, ChangeEvent
from lore.tools.tool import is_still_granted

if TYPE_CHECKING:
    from starlette.types import Scope

log = logging.getLogger("lore.http")

EVENT_STREAM: Final = "text/event-stream"

POLL_S = 1.0
"""At most one event in this time; a look at the counters takes less than a millisecond."""

HEARTBEAT_S = 15.0
"""A comment keeps proxies and browsers from giving the connection up; the grant is checked, too."""

MAX_STREAMS = 64
"""Open streams: a quarter of all requests at once. A tab has one."""

_RETRY_MS = 2_000
"""How long a browser waits before it connects again."""

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(eq=False, slots=True)
class _Subscriber:
    pending: set[ChangedTable] = field(default_factory=set)
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class ChangeFeed:
    """Tells subscribers which tables changed; polls only while there are any."""

    def __init__(
        self,
        memory: Memory,
        stopping: Callable[[], bool],
        *,
        poll_s: float = POLL_S,
        heartbeat_s: float = HEARTBEAT_S,
        max_streams: int = MAX_STREAMS,
    ) -> None:
        self._memory = memory
        self._stopping = stopping
        self._poll_s, self._heartbeat_s = poll_s, heartbeat_s
        self._most = max_streams
        self._subscribers: set[_Subscriber] = set()
        self._poller: asyncio.Task[None] | None = None

    @property
    def is_polling(self) -> bool:
        """Return whether the database is polled."""
        return self._poller is not None and not self._poller.done()

    async def serve(self, request: Request) -> Response:
        """Answer a request with a stream of events, until the client leaves or the server stops."""
        middleware.require_scope(request.scope, "read")
        if len(self._subscribers) >= self._most:
            detail = "Too many open event streams; close a tab."
            raise HTTPException(503, detail, {"retry-after": "10"})
        events = self._events(request.scope)
        return StreamingResponse(events, media_type=EVENT_STREAM, headers=_HEADERS)

    async def _events(self, scope: Scope) -> AsyncGenerator[bytes, None]:
        subscriber = _Subscriber()
        self._subscribers.add(subscriber)
        self._ensure_poller()
        try:
            yield f"retry: {_RETRY_MS}\n: connected\n\n".encode()
            while not self._stopping():
                self._ensure_poller()
                with suppress(TimeoutError):
                    await asyncio.wait_for(subscriber.wake.wait(), self._heartbeat_s)
                if self._stopping() or not await is_still_granted(scope):
                    return
                yield self._next_event(subscriber)
        finally:
            self._subscribers.discard(subscriber)

    def _ensure_poller(self) -> None:
        """Start the poller unless it runs; an error may have ended it."""
        if not self.is_polling:
            self._poller = asyncio.create_task(self._poll())

    def _next_event(self, subscriber: _Subscriber) -> bytes:
        changed = tuple(sorted(subscriber.pending))
        subscriber.pending.clear()
        subscriber.wake.clear()
        if not changed:
            return b": heartbeat\n\n"
        event = ChangeEvent(changed, self._memory.database.now())
        return b"event: change\ndata: " + to_json(event) + b"\n\n"

    async def _poll(self) -> None:
        counters: Any = None
        while self._subscribers:
            try:
                counters, changed = await to_thread.run_sync(
                    self._memory.maintenance.find_changes, counters
                )
            except LoreError as error:  # the next look may succeed
                log.warning("changes not read", extra={"error": type(error).__name__})
                changed = ()
            for one in self._subscribers if changed else ():
                one.pending.update(changed)
                one.wake.set()
            await asyncio.sleep(self._poll_s)
            if self._stopping():
                for one in self._subscribers:
                    one.wake.set()
                return

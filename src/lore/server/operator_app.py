"""What the operator of a server may see: its state and metrics, without names or contents."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lore import __version__
from lore.errors import StoreError
from lore.http import error_responses
from lore.http.endpoint import etag_response, to_json
from lore.http.metrics import MEDIA_TYPE, family
from lore.server.background import BackgroundWork
from lore.server.front import FrontCounters
from lore.server.owner_pool import OwnerPool
from lore.server.owner_service import OwnerService
from lore.server.registry import Registry

log = logging.getLogger("lore.server")

_SHOWN_HASH = 12
"""Characters of an owner's id in a metric: enough to tell owners apart."""

_MAX_SERIES = 1_000


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a server; `budget_pressure` is the highest of the memories that are open."""

    role: str
    version: str
    owners: int
    open_memories: int
    background_owners: int
    in_flight: int
    uptime_s: float
    budget_pressure: float


@dataclass(frozen=True, slots=True)
class OperatorDesk:
    """The figures of a server."""

    registry: Registry
    pool: OwnerPool[OwnerService]
    background: BackgroundWork
    counters: FrontCounters
    names_owners: bool = False

    def status(self) -> ServerStatus:
        """Return the state of the server."""
        return ServerStatus(
            "server",
            __version__,
            self.registry.count_owners(),
            len(self.pool),
            len(self.background),
            self.counters.in_flight,
            round(time.monotonic() - self.counters.started_s, 1),
            max((pressure for _, pressure in self._pressures()), default=0.0),
        )

    def _pressures(self) -> Iterator[tuple[str, float]]:
        """Yield the budget pressure of each open memory."""
        for owner in self.pool.owners():
            service = self.pool.try_acquire(owner)
            if service is None:
                continue
            try:
                yield owner, service.memory.budget.budget_pressure()
            except StoreError as error:  # the other figures are as good without it
                log.warning("budget not read", extra={"error": type(error).__name__})
            finally:
                self.pool.release(owner)

    def metrics(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        status, counters = self.status(), self.counters
        lines = [
            *family("lore_server_owners", "Owners.", [({}, status.owners)], kind="gauge"),
            *family("lore_server_open_memories", "Memories that are open.",
                    [({}, status.open_memories)], kind="gauge"),
            *family("lore_server_background_owners", "Owners with background work.",
                    [({}, status.background_owners)], kind="gauge"),
            *family("lore_server_in_flight", "Requests that are being answered.",
                    [({}, status.in_flight)], kind="gauge"),
            *family("lore_server_requests_total", "Requests by status.",
                    [({"status": str(code)}, count)
                     for code, count in sorted(counters.requests.items())]),
            *family("lore_server_refused_total", "Requests that were refused at the door.",
                    [({"reason": why}, count) for why, count in sorted(counters.refused.items())]),
            *family("lore_server_budget_pressure", "Highest share of a daily budget in use.",
                    [({}, status.budget_pressure)], kind="gauge"),
            *(self._owner_lines() if self.names_owners else ()),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _owner_lines(self) -> Iterator[str]:
        samples = [
            ({"owner": owner[:_SHOWN_HASH]}, pressure) for owner, pressure in self._pressures()
        ][:_MAX_SERIES]
        yield from family(
            "lore_owner_budget_pressure", "Share of the owner's daily budget in use.", samples,
            kind="gauge",
        )  # fmt: skip


def make_operator_app(desk: OperatorDesk) -> Starlette:
    """Return the app of keys without an owner."""

    async def serve_status(request: Request) -> Response:
        status = await to_thread.run_sync(desk.status)
        return etag_response(request, to_json(status))

    async def serve_metrics(_request: Request) -> Response:
        text = await to_thread.run_sync(desk.metrics)
        return Response(text, 200, {"cache-control": "no-store"}, MEDIA_TYPE)

    async def handle_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return error_responses.http_error_response(error, request.scope)

    handlers: dict[Any, Callable[..., Any]] = {HTTPException: handle_error}
    routes = [
        Route("/status", serve_status, methods=["GET"]),
        Route("/api/v1/status", serve_status, methods=["GET"]),
        Route("/metrics", serve_metrics, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers=handlers)

"""A server of many memories: its parts put together, and run until it is stopped."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from lore import __version__, clock, local_files, telemetry
from lore.daemon import daemon_lock, log_file
from lore.daemon.main_loop import limit_heap, stop_signals
from lore.daemon.periodic_tasks import PeriodicTask
from lore.embed.embedder import open_embedder
from lore.embed.pair_model import open_pair_model
from lore.errors import DaemonError
from lore.gateway.request_head import Upstreams
from lore.http.auth import allowed_host_names
from lore.http.request_limits import Limits
from lore.http.server import AppServer, bind
from lore.memory import Memory
from lore.server.background import BackgroundWork
from lore.server.front import Front, FrontCounters, OwnerLogins
from lore.server.memory_store import TEAM_MARK, MemoryStore
from lore.server.operator_app import OperatorDesk, make_operator_app
from lore.server.owner_pool import WAIT_S, OwnerPool
from lore.server.owner_service import (
    MemoryOpener,
    OwnerService,
    ServerThreads,
    ServiceParts,
    SharedModels,
)
from lore.server.registry import Registry
from lore.settings import Settings, telemetry_variables

log = logging.getLogger("lore.server")

GRACE_S = 10
"""How long requests in progress may take to finish when the server stops."""

OWNER_REQUESTS = 64
"""Requests of one owner at a time, a quarter of all: the others must get in, too."""

_POLL_S = 0.5


class OwnerServer:
    """The app of a server with all that it needs; `close` ends it.

    From its creation to its end, paths that callers name are no files of this process.
    """

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        models: SharedModels,
        *,
        host_names: frozenset[str],
        limits: Limits | None = None,
        upstreams: Upstreams | None = None,
        tasks: Sequence[PeriodicTask] | None = None,
    ) -> None:
        store = MemoryStore(registry, settings)
        store.claim()
        self._files = ExitStack()
        self._files.enter_context(local_files.withhold())
        self._stopping = threading.Event()
        limits = limits or Limits.from_settings(settings)
        opener = MemoryOpener(registry, store, models)
        self.registry = registry
        self.logins = OwnerLogins(registry)
        threads = ServerThreads()
        at_once = min(OWNER_REQUESTS, limits.requests_at_once)
        parts = ServiceParts(
            registry, replace(limits, requests_at_once=at_once), host_names, self.lease_team,
            self.logins.find, self._stopping.is_set, threads, upstreams,
        )  # fmt: skip
        self.pool = OwnerPool[OwnerService](
            lambda owner: OwnerService(owner, opener.open(owner), parts),
            OwnerService.close,
            most=settings.server_open_memories,
            idle_s=settings.server_idle_close_s,
            on_crowded=lambda owner: self.app.end_streams(owner),
        )
        self.background = BackgroundWork(registry, self.pool, store, settings, tasks=tasks)
        self.counters = FrontCounters()
        desk = OperatorDesk(
            registry, self.pool, self.background, self.counters, settings.server_owner_metrics
        )
        self.app = Front(
            registry, self.pool, self.logins, make_operator_app(desk), host_names=host_names,
            limits=limits, counters=self.counters, on_request=self.background.note_request,
            on_shutdown=self.pool.close, threads=threads,
        )  # fmt: skip

    @contextmanager
    def lease_team(self, team_id: str, *, wait_s: float = WAIT_S) -> Iterator[Memory]:
        """Lease the memory of a team."""
        with self.pool.lease(f"{TEAM_MARK}{team_id}", wait_s=wait_s) as service:
            yield service.memory

    def stop(self) -> None:
        """Let streams end, and start no more background work."""
        self._stopping.set()

    def close(self) -> bool:
        """Finish queued writes and close everything; not in the event loop.

        Return False if something was still in use.
        """
        self.stop()
        ended = self.background.stop(WAIT_S)
        closed = self.pool.close()
        self._files.close()
        return ended and closed


@contextmanager
def open_models(settings: Settings) -> Iterator[SharedModels]:
    """Open the models that all memories share, until the block ends."""
    opened = open_embedder(settings)
    if opened.notice:
        log.warning("search by keywords only; LORE_HOME=FOLDER 'lore model install' adds the model")
    pair_model = open_pair_model(settings)
    try:
        yield SharedModels(opened.embedder, pair_model)
    finally:
        opened.embedder.close()
        if pair_model is not None:
            pair_model.close()


def serve(
    home: Path,
    settings: Settings,
    *,
    host_names: Sequence[str] = (),
    on_ready: Callable[[str], None] = lambda _address: None,
) -> bool:
    """Run the server of a home until a signal arrives; return False if work was cut off."""
    holder = daemon_lock.find_holder(home)
    if holder is not None:
        raise daemon_lock.already_running_error(home, holder)
    limit_heap()
    with ExitStack() as stack:
        wait = stack.enter_context(stop_signals())
        registry = stack.enter_context(Registry.open(home, create=False))
        lock = daemon_lock.take_lock(home, now=clock.now(), version=__version__)
        stack.callback(lock.release)
        stack.callback(log_file.open_log(home, echo=True))
        log.info("started", extra={"pid": os.getpid(), "version": __version__})
        stack.enter_context(
            telemetry.recording(
                settings.telemetry_endpoint, telemetry_variables(), version=__version__, log=log
            )
        )
        models = stack.enter_context(open_models(settings))
        bound, was_free = bind(settings.server_host, settings.server_port)
        stack.callback(bound.close)
        if settings.server_port and not was_free:
            msg = f"Port {settings.server_port} is taken."
            raise DaemonError(msg, hint="'lore serve --port PORT' uses another.")
        host, port = bound.getsockname()[:2]
        names = allowed_host_names(
            host, (settings.server_host, *settings.server_allowed_hosts, *host_names)
        )
        server = OwnerServer(registry, settings, models, host_names=names)
        ended = _run(server, AppServer(server.app, bound, grace_s=GRACE_S), wait,
                     lambda: on_ready(f"http://{host}:{port}"))  # fmt: skip
        log.info("stopped", extra={"cut_off": not ended})
        return ended


def _run(
    server: OwnerServer,
    app_server: AppServer,
    wait: Callable[[float], bool],
    on_ready: Callable[[], None],
) -> bool:
    failures: list[BaseException] = []

    def serve_http() -> None:
        try:
            app_server.run(on_ready)
        except DaemonError as error:
            failures.append(error)

    thread = threading.Thread(target=serve_http, name="lore-server", daemon=True)
    server.background.start()
    thread.start()
    try:
        while thread.is_alive() and not wait(_POLL_S):
            pass
    finally:
        server.stop()
        app_server.stop()
        thread.join(GRACE_S + 2 * WAIT_S)
    if failures:
        raise failures[0]
    return server.close() and not thread.is_alive()

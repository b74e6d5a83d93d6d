"""The HTTP server of the daemon, and the file with its address.

A failure of the server is shown in the status; the periodic tasks go on without it.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lore import __version__
from lore.daemon import server_address, status_file
from lore.daemon.periodic_tasks import Failure, attempt, log
from lore.daemon.server_address import ServerAddress
from lore.daemon.status_file import Status, describe_gateway, describe_hooks, describe_vectors
from lore.http.hooks import HookCounters
from lore.memory import Memory
from lore.settings import Settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from mcp.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from lore.gateway.memory_plugin import MemoryPlugin
    from lore.http.app import MountedApp
    from lore.http.auth import Authenticator
    from lore.http.middleware import FailureReason
    from lore.http.server import AppServer
    from lore.mcp.transports import McpApps

CommandRunner = Callable[[Memory, bytes], bytes | None]
"""Executes a command line; returns None if the client has to execute it."""

START_TIMEOUT_S = 20.0
"""Stop waiting for a server that takes longer to start."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter before another gets it.

With Python's default of 5 ms, a prompt that arrives during a busy task is answered a tenth to a
fifth later (100,000 messages, measured in turns).
"""

FIRST_REQUEST_S = 1.5
"""How long the first request of a session after a start may take: its state is loaded, and a prompt
without it would lose the session's layer and the provider's cache."""

STOP_TIMEOUT_S = 2.0
"""The server aborts open requests after a second; stopping may take a little longer."""

_NO_MEMORY_TIMEOUT_S = 60.0
"""Without a memory a request only waits for its budget check, which must never be skipped."""


@dataclass(frozen=True, slots=True)
class BoundSocket:
    """A listening socket, and whether it has the configured port."""

    socket: socket.socket
    was_free: bool


def bind_socket(settings: Settings) -> BoundSocket:
    """Listen on the configured address, or on another port if that is taken."""
    from lore.http.server import bind

    port = settings.server_port
    last = server_address.find_last_port(settings.home, port)
    return BoundSocket(*bind(settings.server_host, port, last))


class HttpServer:
    """The HTTP server of a daemon; `on_change` gets its URL and notices.

    `hooks` counts the outcomes of hook calls. A `place` that is passed in outlives the server, so
    that another server can use it. With `shut`, only requests to models are served. `run_command`
    executes the commands of the command line.
    """

    def __init__(
        self,
        memory: Memory,
        on_change: Callable[[str, str], None],
        *,
        place: BoundSocket | None = None,
        shut: FailureReason | None = None,
        run_command: CommandRunner | None = None,
    ) -> None:
        self._memory = memory
        self._run_command = run_command
        self._place = place
        self._shut = shut
        self._settings = memory.settings
        self._on_change = on_change
        self.hooks = HookCounters()
        self._serving: AppServer | None = None
        self._settled = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lore-server", daemon=True)

    def open(self) -> None:
        """Start the server and wait until it listens or has failed."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._thread.start()
        self._settled.wait(START_TIMEOUT_S)

    def close(self) -> bool:
        """Stop the server and return whether all open requests ended."""
        self._stopping.set()
        if self._serving is not None:
            self._serving.stop()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT_S)
        server_address.remove(self._settings.home)
        return not self._thread.is_alive()

    def _run(self) -> None:
        outcome = attempt(self._serve)
        server_address.remove(self._settings.home)
        if isinstance(outcome, Failure):
            fields = {"error": outcome.kind, "place": outcome.place}
            log.warning("server failed", extra=fields)
            self._on_change("", f"The server does not run: {outcome.message}")
        self._settled.set()

    def _serve(self) -> None:
        from lore.http.server import AppServer

        place = self._place or bind_socket(self._settings)
        # The server closes its socket at the end.
        with place.socket if self._place is None else place.socket.dup() as bound:
            if self._stopping.is_set():
                return
            self._serving = AppServer(self._app(bound), bound)
            listening = _listening(bound, self._settings)
            self._serving.run(lambda: self._announce(listening, was_free=place.was_free))

    def _app(self, bound: socket.socket) -> ASGIApp:
        from lore.http.app import make_app
        from lore.http.auth import allowed_host_names
        from lore.http.request_limits import Limits, MemoryThreads
        from lore.http.write_endpoints import Toolbox
        from lore.tools import tool_registry

        memory, settings = self._memory, self._settings
        threads = MemoryThreads()

        def make_mcp_server() -> Server[Any]:
            from lore.mcp.server import make_server

            return make_server(memory, run_work=threads.run)

        host, port = bound.getsockname()[:2]
        return make_app(
            memory,
            self._access(f"lore_{port}"),
            Toolbox(tool_registry.TOOLS, tool_registry.call_tool),
            host_names=allowed_host_names(
                host, (settings.server_host, *settings.server_allowed_hosts)
            ),
            limits=Limits.from_settings(settings),
            mounts=[*mcp_mounts(make_mcp_server), *command_mounts(memory, self._run_command)],
            fallback=gateway_app(memory, self._shut) if settings.gateway_on else None,
            stopping=self._stopping.is_set,
            about=lambda: _page_rows(status_file.read(settings.home)),
            hook_counters=self.hooks,
            failure=self._shut,
            threads=threads,
        )

    def _access(self, cookie: str) -> Authenticator:
        """Return the access check; without a memory only the key of the home is accepted."""
        from lore.http.auth import Authenticator, Logins, ensure_local_key
        from lore.http.middleware import reject_stored_keys
        from lore.tools.tool import LOCAL

        try:
            key = ensure_local_key(self._settings.home)
        except OSError:
            if self._shut is None:
                raise
            key = secrets.token_urlsafe()  # a key that nobody has
        if self._shut is not None:
            return Authenticator(key, reject_stored_keys, Logins(cookie, secret=key))
        access = self._memory.access
        logins = Logins(
            cookie, secret=key, is_key_valid=lambda name: name == LOCAL or access.is_key_valid(name)
        )
        return Authenticator(key, access.identify_key, logins)

    def _announce(self, listening: ServerAddress, *, was_free: bool) -> None:
        try:
            server_address.write(self._settings.home, listening)
        except OSError as error:  # agents that know the port need no file
            log.warning("address not told", extra={"error": type(error).__name__})
        if not was_free:
            server_address.store_port(
                self._settings.home, self._settings.server_port, listening.port
            )
        port_notice = (
            f"Port {self._settings.server_port} was taken: the server uses {listening.port}."
        )
        self._on_change(listening.url, "" if was_free else port_notice)
        log.info("server listens", extra={"host": listening.host, "port": listening.port})
        self._settled.set()
        if self._stopping.is_set() and self._serving is not None:
            self._serving.stop()


def _page_rows(now: Status) -> list[tuple[str, str]]:
    """Return the rows about the daemon on the server's page."""
    rows = [
        ("state", now.state if now.running else "not running"),
        ("since", f"{now.since:%Y-%m-%d %H:%M} UTC" if now.since else ""),
        ("waiting for a vector", f"{now.waiting:,}"),
        ("waiting to be judged", f"{now.unjudged:,}"),
        ("vectors", describe_vectors(now)),
        ("jobs", f"{now.jobs_pending:,} to do, {now.jobs_parked:,} parked"),
        ("spent by agents today", f"${now.agents_usd:.2f}"),
        (
            "spent on background work today",
            f"${now.spent_usd:.2f} of ${now.budget_usd:.2f}" if now.budget_usd else "",
        ),
        ("hooks", describe_hooks(now)),
        ("gateway", describe_gateway(now)),
        ("memory in use", f"{now.memory_mb:,.0f} MB" if now.memory_mb else ""),
        ("last error", now.last_error),
        ("remark", " ".join(filter(None, (now.notice, now.server_notice)))),
    ]
    return [(name, value) for name, value in rows if value]


def mcp_mounts(make_server: Callable[[], Server[Any]]) -> Sequence[MountedApp]:
    """Return the MCP routes of the app; every key with read access may use them.

    The MCP server is created for the first client, and refuses writing tools to read-only keys.
    """
    from lore.http.app import MountedApp
    from lore.mcp.lazy_apps import MCP, LazyApps

    def make() -> McpApps:
        from lore.mcp.transports import McpApps

        return McpApps(make_server())

    mcp = LazyApps(make)
    return [
        MountedApp(path, app, lifespan=mcp.run if path == MCP else None, scopes=("read",))
        for path, app in mcp.apps.items()
    ]


def command_mounts(memory: Memory, run_command: CommandRunner | None) -> Sequence[MountedApp]:
    """Return the route on which the command line lets the daemon execute its commands."""
    from anyio import to_thread
    from starlette.requests import Request
    from starlette.responses import Response

    from lore.http.app import MountedApp
    from lore.proxy.command_client import COMMAND_PATH

    if run_command is None:
        return []

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        answer = await to_thread.run_sync(run_command, memory, body)
        response = Response(answer, 409 if answer is None else 200)
        await response(scope, receive, send)

    return [MountedApp(COMMAND_PATH, serve, scopes=("admin",))]


def gateway_app(memory: Memory, shut: FailureReason | None = None) -> MountedApp:
    """Return the gateway, which handles all paths that are not the server's own.

    With `shut`, requests are forwarded unchanged, and counted if there is a budget.
    """
    from anyio import to_thread

    from lore.gateway.app import Gateway
    from lore.gateway.request_head import Upstreams
    from lore.http.app import MountedApp

    settings = memory.settings
    plugin: MemoryPlugin | None = None
    if shut is None or settings.daily_budget is not None:
        from lore.gateway.memory_plugin import MemoryPlugin
        from lore.gateway.session.prompt_composer import PromptComposer

        plugin = MemoryPlugin(memory, PromptComposer(memory))
    if plugin is not None and shut is None:
        plugin.warm_up()
    gateway = Gateway(
        Upstreams.of(settings),
        plugin=plugin,
        max_bytes=settings.gateway_max_body_bytes,
        within_s=settings.gateway_within_ms / 1000 if shut is None else _NO_MEMORY_TIMEOUT_S,
        first_within_s=FIRST_REQUEST_S,
        stats=memory.context.gateway_stats,
        degraded=None if shut is None else lambda: type(shut()).__name__,
    )

    @asynccontextmanager
    async def run() -> AsyncIterator[None]:
        async with gateway.run():
            if plugin is not None and shut is None:
                await to_thread.run_sync(plugin.wait_until_warm)
            yield
        if plugin is not None:
            plugin.close()

    return MountedApp("/", gateway, lifespan=run)


def _listening(bound: socket.socket, settings: Settings) -> ServerAddress:
    host, port = bound.getsockname()[:2]
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - as a client
    details = (settings.inject_within_ms, _cache_handshake(settings))
    return ServerAddress(reached, port, os.getpid(), __version__, *details)


def _cache_handshake(settings: Settings) -> str:
    """Cache the MCP handshake, so that agents need not wait while no daemon runs."""
    from lore.proxy import cached_handshake

    mark = cached_handshake.fingerprint(__version__, settings)
    if cached_handshake.load_handshake(str(settings.home), mark) is not None:
        return mark
    # Only a new version or changed settings need the MCP SDK here.
    from lore.mcp.handshake_builder import ensure_saved

    try:
        return ensure_saved(settings)
    except OSError as error:
        log.warning("handshake not cached", extra={"error": type(error).__name__})
        return ""

"""The doors of the daemon: the server beside the chores, and the file that says where it is.

Whatever goes wrong with the server is told in the status; the chores go on without it.
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
from lore.daemon import address, status
from lore.daemon.address import Listening
from lore.daemon.attempts import Failure, attempt, log
from lore.daemon.status import Status, told_gateway, told_hooks
from lore.http.tally import Tally
from lore.memory import Memory
from lore.settings import Settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from mcp.server import Server
    from starlette.types import ASGIApp

    from lore.gateway.turning import MemoryTurning
    from lore.http.access import Access
    from lore.http.app import Mount
    from lore.http.logins import Logins
    from lore.http.serving import Serving
    from lore.http.shut import Trouble
    from lore.mcp.http import McpApps

OPENING_S = 20.0
"""A start of the server that takes longer is not waited for."""

SWITCH_S = 0.0005
"""A request gives the interpreter away at each look at the database, and while a chore computes it
waits so long to have it back. Against Python's usual 5 ms, a prompt beside a chore without a pause
is answered a tenth to a fifth sooner (100,000 messages, taken in turns)."""

CLOSING_S = 2.0
"""The server cuts off what is at hand after a second; a stop may take a little more."""

_UNHURRIED_S = 60.0
"""Without a memory only money is looked at, which is waited for in any case; one that is late
would have its money set aside twice."""


@dataclass(frozen=True, slots=True)
class Place:
    """A socket that listens, and whether it does where it was wanted."""

    socket: socket.socket
    was_free: bool


def take_place(settings: Settings) -> Place:
    """Listen where the settings say, or where that is possible."""
    from lore.http.serving import bind

    wanted = settings.server_port
    last = address.find_last_port(settings.home, wanted)
    return Place(*bind(settings.server_host, wanted, last))


class Doors:
    """The server of a daemon; it tells its URL once it listens, and if there is less than that.

    `hooks` counts what became of those that agents called. A `place` that is given outlives the
    server, so that another can follow it there. With `shut`, only requests to models pass.
    """

    def __init__(
        self,
        memory: Memory,
        on_change: Callable[[str, str], None],
        *,
        place: Place | None = None,
        shut: Trouble | None = None,
    ) -> None:
        self._memory = memory
        self._place = place
        self._shut = shut
        self._settings = memory.settings
        self._on_change = on_change
        self.hooks = Tally()
        self._serving: Serving | None = None
        self._settled = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lore-server", daemon=True)

    def open(self) -> None:
        """Start the server and wait until it listens, or has failed."""
        sys.setswitchinterval(SWITCH_S)
        self._thread.start()
        self._settled.wait(OPENING_S)

    def close(self) -> bool:
        """Stop the server and tell whether all that it had at hand has ended."""
        self._stopping.set()
        if self._serving is not None:
            self._serving.stop()
        if self._thread.ident is not None:
            self._thread.join(CLOSING_S)
        address.remove(self._settings.home)
        return not self._thread.is_alive()

    def _run(self) -> None:
        outcome = attempt(self._serve)
        address.remove(self._settings.home)
        if isinstance(outcome, Failure):
            fields = {"error": outcome.kind, "place": outcome.place}
            log.warning("server failed", extra=fields)
            self._on_change("", f"The server does not run: {outcome.told}")
        self._settled.set()

    def _serve(self) -> None:
        from lore.http.serving import Serving

        place = self._place or take_place(self._settings)
        # The server closes its socket in the end.
        with place.socket if self._place is None else place.socket.dup() as bound:
            if self._stopping.is_set():
                return
            self._serving = Serving(self._app(bound), bound)
            listening = _listening(bound, self._settings)
            self._serving.run(lambda: self._tell(listening, was_free=place.was_free))

    def _app(self, bound: socket.socket) -> ASGIApp:
        """Return the app that is served on a socket."""
        from lore.http.app import make_app
        from lore.http.calling import Toolbox
        from lore.http.hosts import allowed_names
        from lore.http.limits import Limits
        from lore.http.logins import Logins
        from lore.tools import catalogue

        memory, settings = self._memory, self._settings
        host, port = bound.getsockname()[:2]
        return make_app(
            memory,
            self._access(Logins(f"lore_{port}")),
            Toolbox(catalogue.TOOLS, catalogue.call),
            names=allowed_names(host, (settings.server_host, *settings.server_allowed_hosts)),
            limits=Limits.of(settings),
            mounts=mounts_of(lambda: _mcp_server(memory)),
            rest=gateway_of(memory, self._shut) if settings.gateway_on else None,
            stopping=self._stopping.is_set,
            about=lambda: _told(status.read(settings.home)),
            hooks=self.hooks,
            shut=self._shut,
        )

    def _access(self, logins: Logins) -> Access:
        """Return what lets requests in; without a memory that is the key of the home alone."""
        from lore.http.access import Access, local_key
        from lore.http.shut import recognise_none

        home = self._settings.home
        if self._shut is None:
            return Access(local_key(home), self._memory.recognise_key, logins)
        try:
            key = local_key(home)
        except OSError:
            key = secrets.token_urlsafe()  # nobody has it
        return Access(key, recognise_none, logins)

    def _tell(self, listening: Listening, *, was_free: bool) -> None:
        try:
            address.write(self._settings.home, listening)
        except OSError as error:  # agents that know the port need no file
            log.warning("address not told", extra={"error": type(error).__name__})
        if not was_free:
            address.keep_port(self._settings.home, self._settings.server_port, listening.port)
        taken = f"Port {self._settings.server_port} was taken: the server uses {listening.port}."
        self._on_change(listening.url, "" if was_free else taken)
        log.info("server listens", extra={"host": listening.host, "port": listening.port})
        self._settled.set()
        if self._stopping.is_set() and self._serving is not None:
            self._serving.stop()


def _told(now: Status) -> list[tuple[str, str]]:
    """Return what the page of the server shows of the daemon."""
    rows = [
        ("state", now.state if now.running else "not running"),
        ("since", f"{now.since:%Y-%m-%d %H:%M} UTC" if now.since else ""),
        ("waiting for a vector", f"{now.waiting:,}"),
        ("jobs", f"{now.jobs_pending:,} to do, {now.jobs_parked:,} parked"),
        ("spent by agents today", f"${now.agents_usd:.2f}"),
        (
            "spent on background work today",
            f"${now.spent_usd:.2f} of ${now.budget_usd:.2f}" if now.budget_usd else "",
        ),
        ("hooks", told_hooks(now)),
        ("gateway", told_gateway(now)),
        ("memory in use", f"{now.memory_mb:,.0f} MB" if now.memory_mb else ""),
        ("last error", now.last_error),
        ("remark", " ".join(filter(None, (now.notice, now.server_notice)))),
    ]
    return [(name, value) for name, value in rows if value]


def mounts_of(make_server: Callable[[], Server[Any]]) -> Sequence[Mount]:
    """Return the doors that an MCP server has in the app, open to every key that may read.

    The server, made when the first client comes, refuses such a key the tools that change
    something.
    """
    from lore.http.app import Mount
    from lore.mcp.late import MCP, LateApps

    def make() -> McpApps:
        from lore.mcp.http import McpApps

        return McpApps(make_server())

    mcp = LateApps(make)
    return [
        Mount(path, app, lifespan=mcp.run if path == MCP else None, needs=("read",))
        for path, app in mcp.apps.items()
    ]


def gateway_of(memory: Memory, shut: Trouble | None = None) -> Mount:
    """Return the door to models, which has all paths that are not the server's own.

    With `shut` all passes as it came, and is counted if there is a budget.
    """
    from anyio import to_thread

    from lore.gateway.app import Gateway
    from lore.gateway.routing import Upstreams
    from lore.http.app import Mount

    settings = memory.settings
    turning = None if shut and settings.daily_budget is None else _turning(memory)
    if turning is not None and shut is None:
        turning.warm_up()
    gateway = Gateway(
        Upstreams.of(settings),
        turning=turning,
        most_bytes=settings.gateway_max_body_bytes,
        within_s=settings.gateway_within_ms / 1000 if shut is None else _UNHURRIED_S,
        passing=memory.passing,
        degraded=None if shut is None else lambda: type(shut()).__name__,
    )

    @asynccontextmanager
    async def run() -> AsyncIterator[None]:
        async with gateway.run():
            if turning is not None and shut is None:
                await to_thread.run_sync(turning.wait_until_warm)
            yield
        if turning is not None:
            turning.close()

    return Mount("/", gateway, lifespan=run)


def _turning(memory: Memory) -> MemoryTurning:
    from lore.gateway.turning import MemoryTurning
    from lore.memory.composing import Composer

    return MemoryTurning(memory, Composer(memory))


def _mcp_server(memory: Memory) -> Server[Any]:
    from lore.mcp.serving import make_server

    return make_server(memory)


def _listening(bound: socket.socket, settings: Settings) -> Listening:
    host, port = bound.getsockname()[:2]
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - as a client
    told = (settings.inject_within_ms, _keep_greeting(settings))
    return Listening(reached, port, os.getpid(), __version__, *told)


def _keep_greeting(settings: Settings) -> str:
    """Keep what agents ask first for when no daemon runs; without it they only wait for one."""
    from lore.proxy import greeting

    mark = greeting.mark_of(__version__, settings)
    if greeting.find(str(settings.home), mark) is not None:
        return mark
    # Only a new version, or changed settings, need the SDK of MCP for it.
    from lore.mcp.greeting import keep

    try:
        return keep(settings)
    except OSError as error:
        log.warning("greeting not kept", extra={"error": type(error).__name__})
        return ""

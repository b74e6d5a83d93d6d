"""What is open for one owner or team: the memory, and for owners the app that serves it.

Each owner has an app of their own. Whatever an app remembers between requests (streams, logins,
sessions of the gateway, events that were seen) is so of one owner alone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from lore.daemon.http_server import FIRST_REQUEST_S, mcp_mounts
from lore.embed.embedder import Embedder
from lore.embed.pair_model import PairModel
from lore.gateway.app import Gateway
from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.request_head import Upstreams, provider_of
from lore.gateway.session.prompt_composer import PromptComposer
from lore.http.app import MountedApp, describe_endpoints, endpoints_of, make_app
from lore.http.auth import Authenticator, Logins
from lore.http.request_limits import MEMORY_THREADS, Limits, MemoryThreads
from lore.http.write_endpoints import Toolbox
from lore.memory import Memory
from lore.records import AccessKey
from lore.server.memory_store import TEAM_MARK, MemoryStore
from lore.server.registry import Registry
from lore.server.team_desk import OwnerTeamDesk, TeamMemories
from lore.tools import tool_registry
from lore.tools.tool import find_grant

if TYPE_CHECKING:
    from mcp.server import Server

log = logging.getLogger("lore.server")

TEAM: Final = "lore.team"
"""The key in the ASGI scope of the team that a request's access key is for; '' for none."""

_START_S, _STOP_S = 20.0, 10.0

_TOOLBOX = Toolbox(tool_registry.TOOLS, tool_registry.call_tool)


@dataclass(frozen=True, slots=True)
class SharedModels:
    """The models that all memories of a server use; they hold nothing of anybody."""

    embedder: Embedder
    pair_model: PairModel | None


class MemoryOpener:
    """Opens the memory of an owner or a team, wherever the server's memories are."""

    def __init__(self, registry: Registry, store: MemoryStore, models: SharedModels) -> None:
        self._registry = registry
        self._settings = store.settings
        self._models = models
        self._store = store

    def open(self, name: str) -> Memory:
        """Open the memory of an owner's id, or of a team's id after `TEAM_MARK`."""
        place = self._store.find(name)
        budget = self._registry.find_budget(place.folder)
        config = replace(
            self._settings,
            home=place.folder,
            db_path="",
            store_owner=place.rows_name,
            # These are the operator's own: one for all would mix the memories of everybody.
            sync_target="",
            sync_api_key="",
            sync_interval_s=0.0,
            daily_budget=self._settings.daily_budget if budget is None else budget,
            tasks_continuity=False,
            tasks_continuity_folders=(),
            capture_native=False,
        )
        memory = Memory.open(
            config=config,
            embedder=self._models.embedder,
            pair_model=self._models.pair_model,
            now=self._registry.database.now,
            vector_owner=name.removeprefix(TEAM_MARK),
        )
        memory.context.default_home = self._registry.home
        return memory


def _threads(count: int) -> Callable[[], CapacityLimiter]:
    return lambda: CapacityLimiter(count)


@dataclass(frozen=True, slots=True)
class ServerThreads:
    """The threads of a server, by what they do: slow requests stop no lookup of a key.

    `memory` is for work on memories, four times what one owner may use at a time; `lookups` for the
    registry; `openers` for memories that wait for a place; `starters` for what follows, which frees
    such a place.
    """

    memory: CapacityLimiter = field(default_factory=_threads(4 * MEMORY_THREADS))
    lookups: CapacityLimiter = field(default_factory=_threads(4))
    openers: CapacityLimiter = field(default_factory=_threads(8))
    starters: CapacityLimiter = field(default_factory=_threads(8))


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """What all services of a server share: rules and ways, and nothing that anybody stored."""

    registry: Registry
    limits: Limits
    host_names: frozenset[str]
    teams: TeamMemories
    find_logins: Callable[[str], Logins]
    stopping: Callable[[], bool]
    threads: ServerThreads
    upstreams: Upstreams | None = None


class OwnerService:
    """The open memory of an owner or a team, and its app, which the first request creates."""

    def __init__(self, owner: str, memory: Memory, parts: ServiceParts) -> None:
        self.owner = owner
        self.memory = memory
        self._parts = parts
        self._threads = MemoryThreads(parts.threads.memory)
        self._app: Starlette | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._runner: asyncio.Task[None] | None = None
        self._starting = threading.Lock()
        if not owner.startswith(TEAM_MARK):
            memory.context.team_desk = OwnerTeamDesk(parts.registry, parts.teams, owner, memory)

    @property
    def app(self) -> Starlette | None:
        """Return the app if it runs."""
        return self._app

    async def get_app(self) -> Starlette:
        """Return the app; create and start it for the first request."""
        if self._app is None:
            loop = asyncio.get_running_loop()
            await to_thread.run_sync(self._start, loop, limiter=self._parts.threads.starters)
        assert self._app is not None
        return self._app

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._starting:
            if self._app is not None:
                return
            app = self._make_app()
            asyncio.run_coroutine_threadsafe(self._enter(app), loop).result(_START_S)
            self._loop, self._app = loop, app

    async def _enter(self, app: Starlette) -> None:
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._runner = asyncio.create_task(self._run(app, started, self._over))
        await started

    @staticmethod
    async def _run(app: Starlette, started: asyncio.Future[None], over: asyncio.Event) -> None:
        """Hold the app's context open in one task, which also leaves it."""
        try:
            async with app.router.lifespan_context(app):
                started.set_result(None)
                await over.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    def close(self) -> None:
        """Stop the app, finish queued writes and close the memory; not in the event loop."""
        loop, runner, over = self._loop, self._runner, self._over
        if loop is not None and runner is not None and over is not None and not loop.is_closed():
            ended = asyncio.run_coroutine_threadsafe(_leave(runner, over), loop)
            try:
                ended.result(_STOP_S)
            except TimeoutError:
                log.warning("app not stopped in time")
        self.memory.close()

    def _make_app(self) -> Starlette:
        parts = self._parts
        logins = parts.find_logins(self.owner)
        # The home's own key exists for local programs; here nobody has it.
        access = Authenticator(
            secrets.token_urlsafe(), self._identify_key, logins, parts.registry.database.now,
            parts.threads.lookups,
        )  # fmt: skip
        return make_app(
            self.memory,
            access,
            _TOOLBOX,
            host_names=parts.host_names,
            limits=parts.limits,
            mounts=mcp_mounts(self._make_mcp_server),
            fallback=self._gateway() if self.memory.settings.gateway_on else None,
            stopping=parts.stopping,
            describe=partial(_describe_api, logins.cookie),
            threads=self._threads,
        )

    def _make_mcp_server(self) -> Server[Any]:
        from lore.mcp.server import make_server  # as in the daemon, the MCP SDK waits for a client

        return make_server(self.memory, run_work=self._threads.run)

    def _identify_key(self, key: str) -> AccessKey | None:
        """Return the record of a key of this owner; a key of anybody else is unknown here."""
        record = self._parts.registry.identify_key(key)
        if record is None or record.owner != self.owner:
            return None
        return AccessKey(
            record.prefix, record.name, record.scopes, record.created_at, record.expires_at,
            record.revoked_at,
        )  # fmt: skip

    def _gateway(self) -> MountedApp:
        gateways = OwnerGateways(self.memory, self._parts)
        return MountedApp("/", gateways, lifespan=gateways.run)


async def _leave(runner: asyncio.Task[None], over: asyncio.Event) -> None:
    over.set()
    await runner


@cache
def _describe_api(cookie: str) -> bytes:
    """Return the description of the API, which is the same for all owners."""
    return describe_endpoints(endpoints_of(_TOOLBOX, Logins(cookie)), cookie=cookie)


_PROVIDER_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_KEY_HEADER = {"anthropic": b"x-api-key", "gemini": b"x-goog-api-key"}
"""The header of a provider's key; all others take a bearer token."""


def _has_provider_key(headers: Headers, scope: Scope) -> bool:
    if any(name in headers for name in _PROVIDER_HEADERS):
        return True
    return any(name == "key" for name, _ in parse_qsl(scope["query_string"].decode("latin-1")))


def deny_local_programs(_client: object, _server: object) -> None:
    """Return that no program of this machine is the owner's: each needs a key."""


class OwnerGateways:
    """The gateways of one owner, one for each payer, created for the first request.

    The memory in a prompt is always the owner's. The money is the owner's, or that of the team
    whose provider key is used.
    """

    def __init__(self, memory: Memory, parts: ServiceParts) -> None:
        self._memory = memory
        self._parts = parts
        self._upstreams = parts.upstreams or Upstreams.of(memory.settings)
        self._gateways: dict[str, Gateway] = {}
        self._composer: PromptComposer | None = None
        self._making = asyncio.Lock()
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within this context."""
        async with self._stack:
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request with the gateway of its payer."""
        payer = await self._add_team_key(scope)
        gateway = self._gateways.get(payer)
        if gateway is None:
            async with self._making:
                gateway = self._gateways.get(payer) or await self._open(payer, self._stack)
                self._gateways[payer] = gateway
        await gateway(scope, receive, send)

    async def _add_team_key(self, scope: Scope) -> str:
        """Add the provider key of the caller's team, if they send none; return who pays.

        Only a request that bears a key of the team gets it, and it leaves for the provider alone.
        """
        team = str(scope.get(TEAM, ""))
        headers = Headers(scope=scope)
        if not team or find_grant(scope) is None or _has_provider_key(headers, scope):
            return ""
        provider = provider_of(scope["path"], headers)
        secret = await to_thread.run_sync(
            self._parts.registry.find_provider_key, team, provider,
            limiter=self._parts.threads.lookups,
        )  # fmt: skip
        if not secret:
            return ""
        name = _KEY_HEADER.get(provider, b"authorization")
        value = secret if name != b"authorization" else f"Bearer {secret}"
        scope["headers"] = [*scope["headers"], (name, value.encode("latin-1"))]
        return team

    async def _open(self, payer: str, stack: AsyncExitStack) -> Gateway:
        memory, settings = self._memory, self._memory.settings
        paying, starters = memory, self._parts.threads.starters
        if payer:
            lease: AbstractContextManager[Memory] = self._parts.teams(payer)
            paying = await to_thread.run_sync(lease.__enter__, limiter=starters)
            stack.callback(lease.__exit__, None, None, None)
        if self._composer is None:
            self._composer = await to_thread.run_sync(PromptComposer, memory, limiter=starters)
        plugin = await to_thread.run_sync(
            MemoryPlugin, memory, self._composer, paying, limiter=starters
        )
        plugin.warm_up()
        stack.callback(plugin.close)
        gateway = Gateway(
            self._upstreams,
            plugin=plugin,
            max_bytes=settings.gateway_max_body_bytes,
            owner=deny_local_programs,
            within_s=settings.gateway_within_ms / 1000,
            first_within_s=FIRST_REQUEST_S,
            stats=memory.context.gateway_stats,
        )
        await stack.enter_async_context(gateway.run())
        await to_thread.run_sync(plugin.wait_until_warm, limiter=starters)
        return gateway

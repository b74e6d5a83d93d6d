"""Load the MCP apps lazily: their routes exist from the start, the first request loads them.

The MCP SDK takes a second to import and 27 MB, which a daemon without MCP clients does not need.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import ASGIApp, Receive, Scope, Send

MCP, SSE, MESSAGES = "/mcp", "/sse", "/messages/"


class Apps(Protocol):
    """Apps by path, and the context that must run while they serve."""

    apps: dict[str, ASGIApp]

    def run(self) -> AbstractAsyncContextManager[None]:
        """Run the apps within this context; enter it once."""
        ...


class LazyApps:
    """Apps that are created at the first request to one of them."""

    def __init__(self, make: Callable[[], Apps]) -> None:
        self._make = make
        self._made: Apps | None = None
        self._tasks: TaskGroup | None = None
        self._making = anyio.Lock()
        self.apps: dict[str, ASGIApp] = {
            path: partial(self._serve, path) for path in (MCP, SSE, MESSAGES)
        }

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the apps within this context; enter it once."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def _serve(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        loaded = self._made or await self._load()
        await loaded.apps[path](scope, receive, send)

    async def _load(self) -> Apps:
        assert self._tasks is not None
        async with self._making:
            if self._made is None:
                loaded = await to_thread.run_sync(self._make)
                await self._tasks.start(self._hold_open, loaded)
                self._made = loaded
        return self._made

    @staticmethod
    async def _hold_open(loaded: Apps, *, task_status: TaskStatus[None]) -> None:
        """Keep the apps running until the server stops, in a task that outlives the request."""
        async with loaded.run():
            task_status.started()
            await anyio.sleep_forever()

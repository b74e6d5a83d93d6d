"""MCP on demand: the doors stand from the start, and what serves them is loaded by who comes first.

The SDK of MCP takes a second and 27 MB, which a daemon without such clients need not have.
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
    """Apps by path, and what has to run while they serve."""

    apps: dict[str, ASGIApp]

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve within this context, once."""
        ...


class LateApps:
    """The same apps, made at the first request for one of them."""

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
        """Serve within this context, once."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def _serve(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        made = self._made or await self._get_made()
        await made.apps[path](scope, receive, send)

    async def _get_made(self) -> Apps:
        assert self._tasks is not None
        async with self._making:
            if self._made is None:
                made = await to_thread.run_sync(self._make)
                await self._tasks.start(self._hold_open, made)
                self._made = made
        return self._made

    @staticmethod
    async def _hold_open(made: Apps, *, task_status: TaskStatus[None]) -> None:
        """Keep the apps served until the server stops, from a task that outlives the request."""
        async with made.run():
            task_status.started()
            await anyio.sleep_forever()

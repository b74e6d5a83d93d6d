"""Tool loop: runs the recall tool inside a response, and asks upstream again with its results."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from lore.errors import LoreError, StoreBusy
from lore.gateway.apis import markers
from lore.gateway.apis.adapter import ApiAdapter, RecallCall, Request, Tool
from lore.gateway.apis.stream_rewriter import StreamRewriter
from lore.gateway.cache_invalidation import BoundedCache
from lore.gateway.plugin_protocol import LocalResponse
from lore.gateway.session.prompt_composer import PromptComposer
from lore.gateway.workers import Failure, WorkerPool, attempt
from lore.memory import Memory
from lore.records import ClientSession
from lore.redaction.redactor import redact_tree
from lore.tools import tool_registry
from lore.tools.tool import Caller

Search = Callable[[RecallCall], str | Failure]
"""Runs a call; errors of Lore become the tool's error result."""

ReserveFollowUp = Callable[[bytes], LocalResponse | None]
"""Reserves money for a follow-up request, or returns the refusal."""

SaveMarkers = Callable[[Mapping[str, str]], None]
"""Stores calls with their results, by the ids of their markers."""


class ToolLoop:
    """Intercepts a response: runs its recall calls, saves them, and asks the upstream again."""

    def __init__(self, rewriter: StreamRewriter, search: Search, save: SaveMarkers) -> None:
        self._rewriter = rewriter
        self._search = search
        self._save = save
        self._output = b""
        """Bytes that the client has still to get."""
        self._pay: ReserveFollowUp = lambda _body: None
        self.last_body = b""
        """Body of the last follow-up request."""

    def set_reservation(self, pay: ReserveFollowUp) -> None:
        """Set how money is reserved for follow-up requests."""
        self._pay = pay

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes for the client, given the next chunk from upstream."""
        return self.rest() + self._rewriter.feed(piece)

    @property
    def is_idle(self) -> bool:
        """Return whether there was no call, so that `follow` has nothing to do."""
        return self._rewriter.is_unchanged

    def follow(self) -> bytes | LocalResponse | None:
        """Return the body of the follow-up request, None, or the refusal of the budget.

        Results are saved in any case.
        """
        self._output += self._rewriter.end_response()
        results = self._run_calls()
        needs_follow_up = self._rewriter.needs_follow_up
        markers_by_id = self._rewriter.add_results(results)
        # A marker that could not be stored stays cached in this process.
        with suppress(LoreError):
            if markers_by_id:
                self._save(markers_by_id)
        if not needs_follow_up:
            return None
        body = self._rewriter.follow_up_body()
        refusal = self._pay(body)
        if refusal is not None:
            return refusal
        self.last_body = body
        return body

    def _run_calls(self) -> dict[str, str]:
        """Return results by the ids of calls; calls that failed are left out."""
        results: dict[str, str] = {}
        for call in self._rewriter.pending_calls:
            result = attempt("recall", partial(self._search, call))
            if not isinstance(result, Failure):
                results[call.id] = result
            elif result.kind == StoreBusy.__name__:
                break  # The next call would wait as long.
        return results

    def fail(self, status: int, body: bytes) -> bytes:
        """Return the bytes that end the response where upstream refused a follow-up request."""
        return self.rest() + self._rewriter.error_output(status, body)

    def rest(self) -> bytes:
        """Return the bytes that end the response."""
        output, self._output = self._output, b""
        return output


SEARCH_TIMEOUT_S = 2.0
"""How long a response waits for a search: it takes some milliseconds, and up to half a second more
where new items wait for their embedding. A locked store may delay it for a minute."""


class MemorySearch:
    """Runs the recall calls of models, and saves them for the markers in the client's history."""

    def __init__(
        self,
        memory: Memory,
        composer: PromptComposer,
        recent_markers: BoundedCache[str, str],
        pool: WorkerPool,
    ) -> None:
        self._memory = memory
        self._composer = composer
        self._recent_markers = recent_markers
        self._pool = pool

    def open_tool_loop(
        self, adapter: ApiAdapter, request: Request, client: ClientSession, body: bytes, tool: Tool
    ) -> ToolLoop:
        """Return the tool loop for the response to a request that offers a tool."""
        rewriter = adapter.open_rewriter(request, body, tool, partial(secrets.token_hex, 8))
        caller = Caller(client.project, client.session, agent=client.agent)
        search = partial(self._search, tool, caller)
        return ToolLoop(rewriter, search, partial(self._save, client))

    def _search(self, tool: Tool, caller: Caller, call: RecallCall) -> str | Failure:
        work = partial(self._call, tool, caller, call)
        future = self._pool.submit("search", work)
        try:
            return future.result(SEARCH_TIMEOUT_S)
        except TimeoutError as error:
            future.cancel()
            msg = "The search took too long."
            raise StoreBusy(msg) from error

    def _call(self, tool: Tool, caller: Caller, call: RecallCall) -> str:
        try:
            return tool_registry.call_tool(self._memory, tool.name, call.arguments, caller).text
        except LoreError as error:
            return " ".join(filter(None, (str(error), error.hint)))

    def _save(self, client: ClientSession, markers_by_id: Mapping[str, str]) -> None:
        redact = partial(redact_tree, self._memory.redactor)
        redacted = {id_: markers.redact_marker(one, redact) for id_, one in markers_by_id.items()}
        for id_, marker in redacted.items():
            self._recent_markers.put(id_, marker)
        self._composer.sessions.save_markers(client, redacted)

"""Searching: what a model asks of memory inside an answer, and how it is kept."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lore.errors import LoreError, StoreBusy
from lore.gateway.apis import markers
from lore.gateway.apis.wire import Call, Request, Tool, Wire
from lore.gateway.latest import LatestMarkers
from lore.gateway.recalling import Recalling
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Speaker
from lore.redaction import redact_tree
from lore.tools import catalogue
from lore.tools.tool import Caller

SEARCH_S = 2.0
"""So long an answer waits for a search: one takes some milliseconds, and half a second more at
most where something waits to be embedded."""

_SEARCHES = 4
"""Searches at once; a store that is locked may hold each of them up for a minute."""


class Searching:
    """Carries out what models ask of memory, and keeps it where the client's history has a line."""

    def __init__(self, memory: Memory, composer: Composer, latest: LatestMarkers) -> None:
        self._memory = memory
        self._composer = composer
        self._latest = latest
        self._pool = ThreadPoolExecutor(_SEARCHES, "lore-searching")

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def splice(
        self, wire: Wire, request: Request, speaker: Speaker, body: bytes, tool: Tool
    ) -> Recalling:
        """Return what stands in the answer to a request that offers a tool."""
        inner = wire.open_splice(request, body, tool, partial(secrets.token_hex, 8))
        caller = Caller(speaker.project, speaker.session)
        search = partial(self._search, tool, caller)
        return Recalling(inner, search, partial(self._keep, speaker))

    def _search(self, tool: Tool, caller: Caller, call: Call) -> str:
        work = partial(catalogue.call, self._memory, tool.name, call.arguments, caller)
        asked = self._pool.submit(work)
        try:
            return asked.result(SEARCH_S).text
        except TimeoutError as error:
            asked.cancel()
            msg = "The search took too long."
            raise StoreBusy(msg) from error
        except LoreError as error:
            return " ".join(filter(None, (str(error), error.hint)))

    def _keep(self, speaker: Speaker, stored: Mapping[str, str]) -> None:
        redact = partial(redact_tree, self._memory.redactor)
        hidden = {id_: markers.redacted(one, redact) for id_, one in stored.items()}
        self._latest.keep(hidden)
        self._composer.keep_markers(speaker, hidden)

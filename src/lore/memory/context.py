"""What all parts of a memory share: settings, database, sources, redactor and locks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lore.capture import embedding_queue
from lore.errors import EmbedderError, StoreError
from lore.llm.summarizer import Summarizer
from lore.recall.sources import Sources
from lore.redaction.redactor import Redactor
from lore.settings import Settings
from lore.store import project_rows
from lore.store.database import Connection, Database

if TYPE_CHECKING:
    from lore.budget.request_ledger import RequestLedger


LATE = "late"
"""The reason of a request that went without memory because memory missed its deadline."""


class GatewayStats:
    """Counts gateway requests and why some went without memory; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._degraded: Counter[str] = Counter()

    def count(self, reason: str = "") -> None:
        """Count a request, with the reason if it went without memory."""
        with self._lock:
            self._requests += 1
            if reason:
                self._degraded[reason] += 1

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return self._requests

    def degraded(self) -> dict[str, int]:
        """Return how many requests went without memory, by reason."""
        with self._lock:
            return dict(self._degraded)


_CATCH_UP_S = 0.5
"""The deadline for embedding waiting items before a recall or a store."""


def _do_nothing() -> None:
    pass


@dataclass(slots=True)
class MemoryContext:
    """What a memory has open, and what is degraded."""

    settings: Settings
    database: Database
    sources: Sources
    redactor: Redactor
    notice: str = ""
    digester: Summarizer | None = None
    end_requests: Callable[[], None] = field(default=_do_nothing, repr=False)
    embedding_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    cycle_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    digester_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    requests: RequestLedger | None = field(default=None, repr=False)
    requests_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    gateway_stats: GatewayStats = field(default_factory=GatewayStats, repr=False)

    def embed_waiting(
        self, *, within_s: float | None = None, progress: embedding_queue.Progress | None = None
    ) -> int:
        """Embed the items that wait for a vector; return how many were embedded.

        Only one thread embeds at a time, so that no vector is computed twice.
        """
        if not self.sources.embedder.dimension:
            return 0
        if not self.embedding_lock.acquire(timeout=-1 if within_s is None else within_s):
            return 0
        try:
            index = self.sources.vector_index()
            return embedding_queue.embed_waiting(
                self.database, self.sources.embedder, index, within_s=within_s, progress=progress
            )
        finally:
            self.embedding_lock.release()

    def catch_up(self) -> None:
        """Embed waiting items for a moment, so that new items are found by meaning."""
        if self.database.read_only or self.sources.missing:
            return
        try:
            self.embed_waiting(within_s=_CATCH_UP_S)
        except StoreError:
            return
        except EmbedderError as error:
            self.sources.do_without(error)

    @property
    def notice_now(self) -> str:
        """Return what is degraded, including temporary problems."""
        return " ".join(filter(None, (self.notice, self.sources.missing)))

    def close(self) -> None:
        """Finish queued work and close everything."""
        self.end_requests()
        if self.requests is not None:
            self.requests.close()
        self.sources.close()
        self.database.close()


class MemoryPart:
    """Base class of the parts of a memory, which share one context."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context

    @property
    def _settings(self) -> Settings:
        return self._context.settings

    @property
    def _database(self) -> Database:
        return self._context.database

    @property
    def _sources(self) -> Sources:
        return self._context.sources

    @property
    def _redactor(self) -> Redactor:
        return self._context.redactor

    def _find_project_n(self, db: Connection, project: str) -> int | None:
        """Return the number of a project; None if no project is given."""
        name = self._redactor.redact(project)
        return project_rows.get_project(db, name) if name else None

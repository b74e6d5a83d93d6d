"""What all parts of a memory share: settings, database, sources, redactor and locks."""

from __future__ import annotations

import base64
import binascii
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import orjson

from lore.capture import embedding_queue
from lore.errors import EmbedderError, InvalidInput, StoreError
from lore.llm.summarizer import Summarizer
from lore.recall.sources import Sources
from lore.records import Page
from lore.redaction.redactor import Redactor
from lore.settings import Settings
from lore.store import project_rows
from lore.store.database import Connection, Database
from lore.validation import Bounds

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
    summarizer: Summarizer | None = None
    close_summarizer: Callable[[], None] = field(default=_do_nothing, repr=False)
    embedding_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    cycle_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    summarizer_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    request_ledger: RequestLedger | None = field(default=None, repr=False)
    request_ledger_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
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
        self.close_summarizer()
        if self.request_ledger is not None:
            self.request_ledger.close()
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


T = TypeVar("T")
Key = Sequence[int | float | str]

MAX_PAGE_SIZE = 500
"""More would make a response too large; the next page is as quick."""

PageSize = Annotated[int, Bounds(least=1, most=MAX_PAGE_SIZE)]

MAX_CURSOR_CHARS = 400
"""Keys are numbers and a kind: a cursor has some 60 characters."""

_LARGEST = 2**62
"""Well within 64 bits, so that the next key is too."""


def page_of(rows: Sequence[tuple[Key, T]], limit: int) -> Page[T]:
    """Return a page of rows; a full page has a cursor for the next."""
    more = rows and len(rows) >= limit
    return Page(tuple(row for _, row in rows), encode_cursor(rows[-1][0]) if more else None)


def encode_cursor(key: Key) -> str:
    """Return the cursor of a key."""
    return base64.urlsafe_b64encode(orjson.dumps(list(key))).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type) -> list[Any]:
    """Return the key of a cursor, or nothing for an empty one; refuse an invalid cursor."""
    if not cursor:
        return []
    msg = "This cursor is not valid for this list."
    hint = "Use 'next' of the previous page unchanged, or start without a cursor."
    try:
        padded = cursor[:MAX_CURSOR_CHARS] + "=" * (-len(cursor) % 4)
        key = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as error:
        raise InvalidInput(msg, hint=hint) from error
    fits = isinstance(key, list) and len(key) == len(kinds)
    if not fits or not all(_fits(value, kind) for value, kind in zip(key, kinds, strict=True)):
        raise InvalidInput(msg, hint=hint)
    return list(key)


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and abs(value) <= _LARGEST
    return isinstance(value, kind)

"""The desk that all others are made of: what a memory has open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lore.capture import embedding
from lore.checking import Seconds, checked_class
from lore.errors import EmbedderError, StoreError
from lore.llm.digester import Digester
from lore.memory.passing import Passing
from lore.recall.sources import Sources
from lore.settings import Settings
from lore.store.db import Database
from lore.text.secrets import Redactor

if TYPE_CHECKING:
    from lore.budget.daily import RequestLedger

_CATCH_UP_S = 0.5
"""A recall first embeds what waits, for so long at most; so does what looks for its place."""


def _do_nothing() -> None:
    """Let nothing be ended: no chat was asked."""


@checked_class
@dataclass(slots=True)
class Desk:
    """What a memory has open, and what is degraded."""

    settings: Settings
    database: Database
    sources: Sources
    redactor: Redactor
    notice: str = ""
    digester: Digester | None = None
    end_requests: Callable[[], None] = field(default=_do_nothing, repr=False)
    embedding_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    cycle_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    digester_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    requests: RequestLedger | None = field(default=None, repr=False)
    requests_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    passing: Passing = field(default_factory=Passing, repr=False)

    def embed_waiting(
        self, *, within_s: Seconds | None = None, progress: embedding.Progress | None = None
    ) -> int:
        """Give vectors to the items that wait for one; return how many that were.

        One thread does so at a time: what several ask for at once is not computed several times.
        """
        if not self.sources.embedder.dimension:
            return 0
        if not self.embedding_lock.acquire(timeout=-1 if within_s is None else within_s):
            return 0
        try:
            index = self.sources.vector_index()
            return embedding.embed_waiting(
                self.database, self.sources.embedder, index, within_s=within_s, progress=progress
            )
        finally:
            self.embedding_lock.release()

    def catch_up(self) -> None:
        """Embed what waits, for a moment, so that what was just stored is found by meaning."""
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
        """Say what is degraded, also what is only so at the moment."""
        return " ".join(filter(None, (self.notice, self.sources.missing)))

"""What all parts of a memory share: settings, database, sources, redactor and locks."""

from __future__ import annotations

import base64
import binascii
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import orjson

from lore.capture import embedding_queue
from lore.embed.embedders import Embedders
from lore.errors import EmbedderError, InvalidInput, StoreError
from lore.lazy_dataclass import dataclass
from lore.llm.summarizer import Summarizer
from lore.recall.sources import Sources
from lore.records import Page
from lore.records.gateway import GatewayStats
from lore.redaction.redactor import Redactor
from lore.settings import Settings
from lore.store import project_rows, replacements, vectors
from lore.store.database import Connection, Database
from lore.validation import Bounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lore.budget.ledger import Ledger
    from lore.digest.pair_judge import ClaimJudge
    from lore.digest.replacement import ReplacementFinder
    from lore.embed.pair_model import PairModel
    from lore.memory.teams import TeamDesk


log = logging.getLogger("lore.memory")

_CATCH_UP_S = 0.5
"""The deadline for embedding waiting items before a recall or a store."""

_LEDGER_NAMES = 512
"""Redacted names of models, sessions and projects to cache; agents use a handful.

Clients may put secrets into names."""


def _do_nothing() -> None:
    pass


@dataclass(slots=True)
class MemoryContext:
    """What a memory has open, and what is degraded."""

    settings: Settings
    database: Database
    serving: Sources
    redactor: Redactor
    embedders: Embedders
    notice: str = ""
    summarizer: Summarizer | None = None
    close_summarizer: Callable[[], None] = field(default=_do_nothing, repr=False)
    sources_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    embedding_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    judge_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    cycle_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    summarizer_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    ledger: Ledger | None = field(default=None, repr=False)
    ledger_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    finder: ReplacementFinder | None = field(default=None, repr=False)
    judge_failed: bool = False
    pair_model: PairModel | None = field(default=None, repr=False)
    pair_model_failed: bool = False
    owns_pair_model: bool = True
    team_desk: TeamDesk | None = field(default=None, repr=False)
    default_home: Path | None = None
    """The home of the server that the memory is in; its daily budget applies without an own one."""
    gateway_stats: GatewayStats = field(default_factory=GatewayStats, repr=False)

    @property
    def sources(self) -> Sources:
        """Return what recall reads from, with the embedder whose vectors are searched.

        That changes once all items are embedded again, in this process or another. Whoever uses
        the sources meanwhile keeps those with the former embedder, so vectors are never mixed.
        """
        serving = self.serving
        if not serving.embedder.dimension or serving.missing:
            return serving
        with self.database.read() as db:
            identity = vectors.find_active_identity(db)
        if identity in (None, serving.embedder.identity):
            return serving
        return self._change_embedder(identity)

    def _change_embedder(self, identity: str) -> Sources:
        with self.sources_lock:
            if self.serving.embedder.identity == identity:
                return self.serving
            embedder = self.embedders.find(identity)
            if embedder is None:
                msg = f"The vectors are of '{identity}', which is not at hand"
                self.serving.do_without(EmbedderError(msg))
            else:
                self.serving = Sources(self.database, embedder, self.settings)
                self.embedders.drop_former(serving=identity)
            return self.serving

    def embed_waiting(
        self,
        *,
        again: bool = False,
        judge: bool = True,
        within_s: float | None = None,
        progress: embedding_queue.Progress | None = None,
    ) -> int:
        """Embed the items that wait for a vector; return how many were embedded.

        With `again`, items are then embedded again for a new embedder, and the vectors of a former
        one are deleted. With `judge`, it is judged at last what the items replace. Only one thread
        embeds at a time, so that no vector is computed twice.
        """
        sources = self.sources
        if not sources.embedder.dimension:
            return 0
        if not self.embedding_lock.acquire(timeout=-1 if within_s is None else within_s):
            return 0
        try:
            count = embedding_queue.embed_waiting(
                self.database,
                sources.embedder,
                sources.vector_index(),
                within_s=within_s,
                progress=progress,
            )
            count += self._embed_again(within_s, progress) if again else 0
            sources.update_index(within_s=within_s)
        finally:
            self.embedding_lock.release()
        if judge:
            self.judge_waiting(within_s=within_s)
        return count

    def judge_waiting(self, *, within_s: float | None = None) -> int:
        """Judge what new items replace; return how many were judged.

        A failure is logged once and leaves them for later: search and digests do without it.
        """
        self.suggest_reworded()
        sources = self.sources
        if not sources.embedder.dimension:
            return 0
        with self.database.read() as db:
            if not replacements.waiting_items(db, limit=1):
                return 0
        if not self.judge_lock.acquire(timeout=-1 if within_s is None else within_s):
            return 0
        try:
            return self._open_finder(sources).judge_waiting(within_s=within_s)
        except (EmbedderError, StoreError) as error:
            if not self.judge_failed:
                log.warning("replacements not judged", extra={"error": type(error).__name__})
            self.judge_failed = True
            return 0
        finally:
            self.judge_lock.release()

    def suggest_reworded(self) -> None:
        """Suggest the rules that say in other words what a person rejected."""
        from lore.digest.rejected_rules import suggest_reworded

        if self.database.read_only:
            return
        with suppress(EmbedderError, StoreError):  # they are compared again next time
            suggest_reworded(self.database, self._open_judge)

    def _open_finder(self, sources: Sources) -> ReplacementFinder:
        from lore.digest.replacement import ReplacementFinder

        if self.finder is None or self.finder.embedder is not sources.embedder:
            self.finder = ReplacementFinder(
                self.database, sources.embedder, sources.nearest, self._open_judge()
            )
        return self.finder

    def _open_judge(self) -> ClaimJudge:
        from lore.digest.pair_judge import ModelJudge

        return ModelJudge(self.open_pair_model, self.give_up_pair_model)

    def open_pair_model(self) -> PairModel | None:
        """Return the model that reads two texts together, or None; opened on the first call."""
        from lore.embed.pair_model import open_pair_model

        with self.sources_lock:
            if self.pair_model is None and not self.pair_model_failed:
                try:
                    self.pair_model = open_pair_model(self.settings)
                except (EmbedderError, OSError) as error:
                    self._log_pair_model(error)
                self.pair_model_failed = self.pair_model is None
            return None if self.pair_model_failed else self.pair_model

    def give_up_pair_model(self, error: Exception) -> None:
        """Do without the pair model until the process ends; it is closed with the memory."""
        with self.sources_lock:
            self._log_pair_model(error)
            self.pair_model_failed = True

    def _log_pair_model(self, error: Exception) -> None:
        log.warning("pair model unusable", extra={"error": type(error).__name__})

    def _embed_again(
        self, within_s: float | None, progress: embedding_queue.Progress | None
    ) -> int:
        count = embedding_queue.embed_waiting(
            self.database,
            self.embedders.wanted,
            None,
            following=True,
            within_s=within_s,
            progress=progress,
        )
        embedding_queue.delete_retired(self.database, within_s=within_s)
        return count

    @contextmanager
    def read_caught_up(self) -> Iterator[Connection]:
        """Yield a connection of this thread, as `read` does, after waiting items were embedded.

        Usually none waits, and the check for it shares the transaction.
        """
        with ExitStack() as stack:
            db = stack.enter_context(self.database.read())
            if not self.database.read_only and vectors.has_pending(db):
                stack.close()
                self.catch_up()
                db = stack.enter_context(self.database.read())
            yield db

    def catch_up(self) -> None:
        """Embed waiting items for a moment, so that new items are found by meaning.

        What they replace is judged in the background: an answer does not wait for it.
        """
        if self.database.read_only:
            return
        try:
            with self.database.read() as db:
                has_work = vectors.has_pending(db) and not self.sources.missing
            if not has_work:
                return
            self.embed_waiting(judge=False, within_s=_CATCH_UP_S)
        except StoreError:
            return
        except EmbedderError as error:
            self.sources.do_without(error)

    def open_ledger(self) -> Ledger:
        """Return the ledger of all model calls, opened on the first call."""
        return self.ledger or self._open_ledger()

    def _open_ledger(self) -> Ledger:
        from lore.budget.ledger import Ledger
        from lore.budget.limits import DailyBudgetSetting
        from lore.budget.prices import PriceCatalogue

        with self.ledger_lock:
            if self.ledger is None:
                self.ledger = Ledger(
                    self.database,
                    PriceCatalogue(self.settings.prices, now=self.database.now),
                    background_usd=self.settings.background_daily_budget,
                    calls_per_day=self.settings.chat_calls_per_day,
                    redact=lru_cache(_LEDGER_NAMES)(self.redactor.redact),
                    current_budget=DailyBudgetSetting(self.settings, self.default_home),
                )
            return self.ledger

    def open_summarizer(self) -> Summarizer:
        """Return the summarizer, opened on the first call."""
        with self.summarizer_lock:
            return self.summarizer or self._open_summarizer()

    def _open_summarizer(self) -> Summarizer:
        from lore.llm.offline.summarizer import OfflineSummarizer
        from lore.llm.summarizer import open_summarizer

        opened = open_summarizer(
            self.settings,
            offline=OfflineSummarizer(
                self._embed if self.sources.embedder.dimension else None,
                encoder=self.sources.embedder.name,
                read=self._read_statements,
            ),
            ledger=self.open_ledger(),
        )
        self.summarizer, self.close_summarizer = opened.summarizer, opened.close
        self.notice = " ".join(filter(None, (self.notice, opened.notice)))
        return opened.summarizer

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.sources.embedder.embed(texts)

    def _read_statements(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32] | None:
        model = self.open_pair_model()
        if model is None:
            return None
        try:
            return model.statements(pairs)
        except (EmbedderError, OSError) as error:
            self.give_up_pair_model(error)
            return None

    @property
    def is_served(self) -> bool:
        """Return whether this is the memory of an owner on a server of many."""
        return self.team_desk is not None

    @property
    def shown_home(self) -> str:
        """Return the path of the home; '' on a server, where it is not the owner's business."""
        return "" if self.is_served else str(self.settings.home)

    @property
    def notice_now(self) -> str:
        """Return what is degraded, including temporary problems."""
        return " ".join(
            filter(None, (self.notice, self.serving.missing, self.serving.index_notice))
        )

    def close(self) -> None:
        """Finish queued work and close everything."""
        self.close_summarizer()
        if self.ledger is not None:
            self.ledger.close()
        self.serving.close()
        self.embedders.close()
        if self.pair_model is not None and self.owns_pair_model:
            self.pair_model.close()
        self.database.close()
        if self.ledger is not None:
            self.ledger.close_journal()


class MemoryPart:
    """Base class of the parts of a memory, which share one context."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context
        self._database = context.database
        self._redactor = context.redactor

    @property
    def _sources(self) -> Sources:
        return self._context.sources

    @property
    def _settings(self) -> Settings:
        return self._context.settings

    def _find_project_n(self, db: Connection, project: str) -> int | None:
        """Return the number of a project; None if no project is given."""
        name = self._redactor.redact(project)
        return project_rows.get_project(db, name) if name else None


LIVE = timedelta(hours=1)
"""A session that was silent for longer is not the current one:

an agent's transcript is read every half minute, and a person thinks for minutes between turns.
"""

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

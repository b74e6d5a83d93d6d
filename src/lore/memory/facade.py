"""Memory: opens a home once and offers its parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lore import clock, settings
from lore.capture import embedding_queue
from lore.embed import Embedder, open_embedder
from lore.embed.embedder import NoEmbedder
from lore.embed.embedding_cache import CachedEmbedder
from lore.errors import LoreError, NotFound, StoreError
from lore.memory.access import Access
from lore.memory.budget import Budget
from lore.memory.context import MemoryContext, MemoryPart
from lore.memory.digest import Digest
from lore.memory.knowledge import Knowledge
from lore.memory.maintenance import Maintenance
from lore.memory.prompts import Prompts
from lore.memory.search import Search
from lore.memory.sessions import Sessions
from lore.recall import health
from lore.recall.sources import Sources
from lore.records import Check
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor, open_redactor
from lore.settings import Settings
from lore.store import maintenance
from lore.store.database import Database, open_database
from lore.validation import validate_arguments, validate_methods

_NO_MEMORY = (
    "'lore capture --all' creates one from your agents' sessions;"
    " 'lore remember' and 'lore import' create one too."
)

_RENAMED = {
    "access_keys": "list_keys",
    "around": "timeline",
    "count_request": "release_unused",
    "distil_now": "distill_now",
    "do_upkeep": "run_upkeep",
    "find_fits": "find_candidates",
    "forgettable": "preview_forget",
    "leave_out": "exclude_from_page",
    "let_go": "clear_caches",
    "names_with": "find_names",
    "note_given": "record_injection",
    "passing": "gateway_stats",
    "recognise_key": "identify_key",
    "standing": "standing_instructions",
    "take_shared": "apply_shared",
}
"""Former names of methods, from when all of them were methods of `Memory`."""


@validate_methods
class Memory:
    """Long-term memory in one database, divided into parts.

    The parts are `knowledge`, `sessions`, `search`, `digest`, `maintenance`, `access`, `budget` and
    `prompts`. The everyday methods are attributes of `Memory` as well. Some parts can be called, as
    `df.plot` in pandas: `memory.search("…")` searches fragments, `memory.sessions()` lists
    sessions, `memory.digest()` digests sessions.
    """

    def __init__(self, context: MemoryContext) -> None:
        self.context = context
        self.knowledge = Knowledge(context)
        self.sessions = Sessions(context)
        self.search = Search(context)
        self.digest = Digest(context)
        self.maintenance = Maintenance(context)
        self.access = Access(context)
        self.budget = Budget(context)
        self.prompts = Prompts(context, self.sessions, self.digest)
        self.store = self.knowledge.store
        self.remember = self.knowledge.remember
        self.capture = self.sessions.capture
        self.capture_files = self.sessions.capture_files
        self.recall = self.search.recall
        self.read = self.search.read
        self.distill = self.digest.distill
        self.forget = self.maintenance.forget

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        *,
        config: Settings | None = None,
        embedder: Embedder | None = None,
        now: clock.Clock = clock.now,
        create: bool = True,
    ) -> Self:
        """Open the memory in a home folder; create the folder if it is missing."""
        warning = ""
        if config is None:
            loaded = settings.load(home=Path(home) if home else None, project_dir=Path.cwd())
            config, warning = loaded.settings, loaded.warning
        path = config.database
        if not create and not path.exists():
            msg = f"There is no memory at {path} yet."
            raise NotFound(msg, hint=_NO_MEMORY)
        database = open_database(
            path, busy_timeout_s=config.store_busy_timeout_s, backups=config.backups, now=now
        )
        try:
            redactor = open_redactor(config)
            opened, notice = (embedder, "") if embedder else _open_embedder(config)
            embedding_queue.adopt_embedder(database, opened)
            maintenance.schedule_maintenance(database)
            cached = CachedEmbedder(opened) if opened.dimension else opened
            sources = Sources(database, cached, config, owns_embedder=embedder is None)
        except BaseException:
            database.close()
            raise
        degraded = " ".join(filter(None, (warning, notice, _explain_read_only(database))))
        return cls(MemoryContext(config, database, sources, redactor, degraded))

    def close(self) -> None:
        """Finish queued work and close everything."""
        self.context.close()

    @property
    def settings(self) -> Settings:
        """Return the settings."""
        return self.context.settings

    @property
    def database(self) -> Database:
        """Return the database."""
        return self.context.database

    @property
    def sources(self) -> Sources:
        """Return the sources of recall."""
        return self.context.sources

    @property
    def redactor(self) -> Redactor:
        """Return the redactor of secrets."""
        return self.context.redactor

    @property
    def notice(self) -> str:
        """Return what was degraded when the memory was opened."""
        return self.context.notice

    @property
    def notice_now(self) -> str:
        """Return what is degraded, including temporary problems."""
        return self.context.notice_now

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the memory."""
        self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Look up a method in the parts, for programs that call it on `Memory`."""
            new_name = _RENAMED.get(name, name)
            parts = [part for part in vars(self).values() if isinstance(part, MemoryPart)]
            for part in (*parts, vars(self).get("context")):
                if not name.startswith("_") and hasattr(part, new_name):
                    return getattr(part, new_name)
            msg = f"'Memory' object has no attribute {name!r}"
            raise AttributeError(msg)


def _explain_read_only(database: Database) -> str:
    if database.full:
        return "The disk is full: the memory is open for reading only."
    if database.read_only:
        return "The memory is open for reading only: 'lore doctor' says why."
    return ""


def _open_embedder(config: Settings) -> tuple[Embedder, str]:
    opened = open_embedder(config)
    return opened.embedder, opened.notice


@validate_arguments
def restore_backup(source: Path, *, home: Path | None = None) -> Path | None:
    """Replace the database by a backup; return where the former database was moved."""
    config = settings.load(home=home).settings
    return maintenance.restore(config.database, source, config.backups)


@validate_arguments
def examine(*, home: Path | None = None, fix: bool = False) -> list[Check]:
    """Check everything that can be wrong with a home; with `fix`, repair derived data."""
    config = settings.load(home=home).settings
    checks = health.check_home(config)
    try:
        memory = Memory.open(config=config, create=False)
    except NotFound as error:
        return [*checks, Check("database", "degraded", str(error), error.hint)]
    except LoreError as error:
        return [*checks, Check("database", "broken", str(error), error.hint)]
    with memory:
        checks += health.check_memory(memory.sources, memory.notice, fix=fix)
        return [*checks, *_check_money(memory)]


def _check_money(memory: Memory) -> list[Check]:
    from lore.budget import limits

    try:
        return limits.check_budgets(
            memory.budget.spend_report(),
            memory.budget.spend_pressure(),
            memory.budget.spent_today(),
        )
    except StoreError:
        return []  # the check of the database has reported it


def closed_memory(config: Settings) -> Memory:
    """Return a memory with a closed database, for a gateway that runs without its store.

    Reads and writes raise `StoreError`; spend is counted in this process only.
    """
    database = Database(config.database, busy_timeout_s=config.store_busy_timeout_s)
    database.close()
    sources = Sources(database, NoEmbedder(), config, owns_embedder=True)
    return Memory(MemoryContext(config, database, sources, EPHEMERAL_REDACTOR))

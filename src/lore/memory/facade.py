"""Memory: opens a home once and offers its parts."""

from __future__ import annotations

import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lore import clock, config_files, settings
from lore.capture import embedding_queue
from lore.embed import Embedder, open_embedder
from lore.embed.embedder import NoEmbedder, OpenedEmbedder
from lore.embed.embedders import Embedders
from lore.embed.pair_model import PairModel
from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory.context import MemoryContext
from lore.memory.vector_server import attach_vector_server
from lore.recall.sources import Sources
from lore.records import Check
from lore.redaction.redactor import EPHEMERAL_REDACTOR, home_key, open_redactor
from lore.settings import Settings
from lore.store import backup_seals, maintenance
from lore.store.database import Database, open_database, open_on_server
from lore.validation import validate_arguments, validate_methods

if TYPE_CHECKING:
    from lore.memory.access import Access
    from lore.memory.budget import Budget
    from lore.memory.continuity import Continuity
    from lore.memory.digest import Digest
    from lore.memory.edits import Edits
    from lore.memory.handoffs import Handoffs
    from lore.memory.knowledge import Knowledge
    from lore.memory.layout import Layout
    from lore.memory.maintenance import Maintenance
    from lore.memory.native import Native
    from lore.memory.prompts import Prompts
    from lore.memory.review import Review
    from lore.memory.search import Search
    from lore.memory.sessions import Sessions
    from lore.memory.strategies import Strategies
    from lore.memory.sync import Sync
    from lore.memory.tasks import Tasks
    from lore.memory.teams import Teams

_NO_MEMORY = (
    "'lore capture --all' creates one from your agents' sessions;"
    " 'lore remember' and 'lore import' create one too."
)

_FORMER_NAMES = {
    "access": "create_key find_key revoke_key access_keys=list_keys recognise_key=identify_key",
    "budget": "correct_request day_budget find_model_price has_budget load_prices page_of_spend"
    " past_turns release_request reserve_request settle_request spend_counters spend_pressure"
    " spend_report spent_today count_request=release_unused",
    "digest": "consolidate curate cycles find_due_job interrupt is_cycle_due jobs queue_digest"
    " queue_episodes retry_jobs run_job undo_cycle",
    "knowledge": "conflicts delete diff fragment history link log next_undo offers"
    " page_of_conflicts page_of_edges page_of_fragments page_of_roots plan_share promote"
    " read_shared redo resolve revoke share store_all supersede undo update"
    " leave_out=exclude_from_page take_shared=apply_shared",
    "maintenance": "backup embed_waiting queues require_writable stats do_upkeep=run_upkeep"
    " forgettable=preview_forget let_go=clear_caches names_with=find_names",
    "native": "",
    "prompts": "begin_session end_session end_turn for_error for_prompt warm_up"
    " distil_now=distill_now find_fits=find_candidates note_given=record_injection",
    "search": "explore find_sessions roots short_ids titles traverse why"
    " around=timeline standing=standing_instructions",
    "sessions": "episode episodes estimate_capture export find_live_session find_project"
    " has_session import_lines message messages page_of_distillations page_of_episodes"
    " page_of_messages page_of_projects page_of_sessions projects",
    "layout": "",
    "strategies": "",
    "sync": "",
    "tasks": "",
    "continuity": "",
    "handoffs": "",
    "edits": "",
    "review": "",
    "teams": "",
}
"""Methods of each part from when all of them were methods of `Memory`; `former=current`."""

_EVERYDAY_NAMES = {
    "digest": "distill",
    "knowledge": "remember store",
    "maintenance": "forget",
    "search": "read recall",
    "sessions": "capture capture_files",
}
"""Methods of each part that `Memory` has as well."""

_PART_METHODS = {
    former: (part, current or former)
    for part, names in (*_FORMER_NAMES.items(), *_EVERYDAY_NAMES.items())
    for former, _, current in (name.partition("=") for name in names.split())
}


@validate_methods
class Memory:
    """Long-term memory in one database, divided into parts.

    The parts are `knowledge`, `edits`, `review`, `sessions`, `search`, `digest`,
    `maintenance`, `native`, `tasks`, `handoffs`, `continuity`, `strategies`, `layout`, `access`,
    `budget`, `sync`, `teams` and `prompts`. The everyday methods are attributes of `Memory` too.
    Some parts can be called, as `df.plot` in pandas: `memory.search("…")` searches fragments,
    `memory.sessions()` lists sessions, `memory.digest()` digests sessions.

    A part is imported at its first use: a command needs one or two of them.
    """

    def __init__(self, context: MemoryContext) -> None:
        self.context = context
        self.database = context.database
        self.redactor = context.redactor
        self._parts_lock = threading.RLock()
        if TYPE_CHECKING:
            self.knowledge = Knowledge(context)
            self.edits = Edits(context)
            self.review = Review(context)
            self.sessions = Sessions(context)
            self.search = Search(context)
            self.digest = Digest(context)
            self.maintenance = Maintenance(context)
            self.native = Native(context)
            self.tasks = Tasks(context)
            self.handoffs = Handoffs(context)
            self.continuity = Continuity(context)
            self.strategies = Strategies(context)
            self.sync = Sync(context)
            self.layout = Layout(context)
            self.access = Access(context)
            self.teams = Teams(context)
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
        pair_model: PairModel | None = None,
        now: clock.Clock = clock.now,
        create: bool = True,
        short_lived: bool = False,
        vector_owner: str = "",
    ) -> Self:
        """Open the memory in a home folder; create the folder if it is missing.

        With `short_lived` the model loads faster and embeds slower: for a process that asks once.
        An `embedder` and a `pair_model` that are passed in stay open: several memories share them.
        `vector_owner` is the hash by which a vector database knows the owner, on a server of many.
        """
        warning = ""
        if config is None:
            loaded = settings.load(home=Path(home) if home else None, project_dir=Path.cwd())
            config, warning = loaded.settings, loaded.warning
        if config_files.tighten_folder(config.home):
            tightened = f"{config.home} was open to other users of this machine; it is private now."
            warning = f"{warning} {tightened}".strip()
        path = config.database
        if not create and not config.store_url and not path.exists():
            msg = f"There is no memory at {path} yet."
            raise NotFound(msg, hint=_NO_MEMORY)
        database = _open_database(config, now)
        try:
            left = attach_vector_server(database, config, vector_owner)
            redactor = open_redactor(config)
            opened = (
                OpenedEmbedder(embedder, "")
                if embedder
                else open_embedder(config, short_lived=short_lived)
            )
            embedders = Embedders(opened.embedder, config, owns_wanted=embedder is None)
            serving = embedding_queue.adopt_embedder(database, embedders)
            maintenance.schedule_maintenance(database)
            sources = Sources(database, serving.embedder, config)
        except BaseException:
            database.close()
            raise
        notices = (warning, opened.notice, serving.notice, _explain_read_only(database), left)
        degraded = " ".join(filter(None, notices))
        context = MemoryContext(config, database, sources, redactor, embedders, degraded)
        context.pair_model, context.owns_pair_model = pair_model, pair_model is None
        return cls(context)

    def close(self) -> None:
        """Finish queued work and close everything."""
        self.context.close()

    @property
    def sources(self) -> Sources:
        """Return what recall reads from."""
        return self.context.sources

    @property
    def settings(self) -> Settings:
        """Return the settings."""
        return self.context.settings

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
            """Return a part, or a method of a part by its name here or its former name."""
            if name in _FORMER_NAMES:
                return self._open_part(name)
            if name not in _PART_METHODS:
                msg = f"'Memory' object has no attribute {name!r}"
                raise AttributeError(msg)
            part, method = _PART_METHODS[name]
            return getattr(getattr(self, part), method)

        def _open_part(self, name: str) -> Any:
            """Create a part at its first use; all threads get the same."""
            with self._parts_lock:
                if name not in vars(self):
                    part = getattr(import_module(f"lore.memory.{name}"), name.capitalize())
                    shared = (self.sessions, self.digest) if name == "prompts" else ()
                    setattr(self, name, part(self.context, *shared))
                return vars(self)[name]


def _open_database(config: Settings, now: clock.Clock) -> Database:
    """Open the database of a home, or its owner's memory on a server."""
    if config.store_url:
        return open_on_server(
            config.store_url,
            config.store_owner,
            config.database,
            busy_timeout_s=config.store_busy_timeout_s,
            now=now,
            connections=config.store_connections,
            cache_mb=config.store_vector_cache_mb,
        )
    return open_database(
        config.database,
        busy_timeout_s=config.store_busy_timeout_s,
        backups=config.backups,
        now=now,
        seal=lambda copy: backup_seals.seal(copy, home_key(config, "backup")),
    )


def _explain_read_only(database: Database) -> str:
    if database.full:
        return "The disk is full: the memory is open for reading only."
    if database.read_only:
        return "The memory is open for reading only: 'lore doctor' says why."
    return ""


@validate_arguments
def restore_backup(source: Path, *, home: Path | None = None, trust: bool = False) -> Path | None:
    """Replace the database by a backup; return where the former database was moved.

    A backup that this home did not seal is refused without `trust`.
    """
    config = settings.load(home=home).settings
    if config.store_url:
        msg = "A memory on PostgreSQL is restored by the tools of the server."
        raise InvalidInput(msg, hint="Use pg_restore, or 'lore import' for an export.")
    key = home_key(config, "backup")
    return maintenance.restore(config.database, source, config.backups, key=key, trust=trust)


@validate_arguments
def examine(*, home: Path | None = None, fix: bool = False) -> list[Check]:
    """Check everything that can be wrong with a home; with `fix`, repair derived data."""
    from lore.recall import health

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
        return [*checks, *memory.maintenance.check_money()]


def closed_memory(config: Settings) -> Memory:
    """Return a memory with a closed database, for a gateway that runs without its store.

    Reads and writes raise `StoreError`; spend is counted in this process only.
    """
    database = Database(config.database, busy_timeout_s=config.store_busy_timeout_s)
    database.close()
    embedders = Embedders(NoEmbedder(), config, owns_wanted=True)
    sources = Sources(database, embedders.wanted, config)
    return Memory(MemoryContext(config, database, sources, EPHEMERAL_REDACTOR, embedders))

"""Memory: opens everything once; its desks delegate."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from lore import clock, settings
from lore.capture import embedding
from lore.checking import checked, checked_class
from lore.embed import Embedder, open_embedder
from lore.embed.remembering import RememberingEmbedder
from lore.errors import LoreError, NotFound, StoreError
from lore.memory.admitting import Admitting
from lore.memory.asking import Asking
from lore.memory.capturing import Capturing
from lore.memory.digesting import Digesting
from lore.memory.keeping import Keeping
from lore.memory.knowing import Knowing
from lore.memory.listing import Listing
from lore.memory.looking import Looking
from lore.memory.prompting import Prompting
from lore.memory.spending import Spending
from lore.memory.working import Working
from lore.recall import health
from lore.recall.sources import Sources
from lore.records import Check
from lore.redaction import open_redactor
from lore.settings import Settings
from lore.store import upkeep
from lore.store.db import Database, open_database

_NO_MEMORY = (
    "'lore capture --all' makes one of your agents' conversations;"
    " 'lore remember' and 'lore import' make one too."
)


@checked_class
class Memory(
    Prompting, Capturing, Knowing, Asking, Looking, Listing, Digesting, Keeping, Working, Admitting,
    Spending,
):  # fmt: skip
    """All that one database holds, and the object that opens it."""

    __slots__ = ()

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
        """Open the memory in a home folder, made if it is not there."""
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
            embedding.adopt_embedder(database, opened)
            upkeep.begin_upkeep(database)
            remembering = RememberingEmbedder(opened) if opened.dimension else opened
            sources = Sources(database, remembering, config, owns_embedder=embedder is None)
        except BaseException:
            database.close()
            raise
        degraded = _joined(warning, notice, _why_read_only(database))
        return cls(config, database, sources, redactor, degraded)

    def close(self) -> None:
        """Finish what is queued and close everything."""
        self.end_requests()
        if self.requests is not None:
            self.requests.close()
        self.sources.close()
        self.database.close()

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the memory."""
        self.close()


def _joined(*notices: str) -> str:
    return " ".join(notice for notice in notices if notice)


def _why_read_only(database: Database) -> str:
    if database.full:
        return "The disk is full: the memory is open for reading only."
    if database.read_only:
        return "The memory is open for reading only: 'lore doctor' says why."
    return ""


def _open_embedder(config: Settings) -> tuple[Embedder, str]:
    opened = open_embedder(config)
    return opened.embedder, opened.notice


@checked
def restore_backup(source: Path, *, home: Path | None = None) -> Path | None:
    """Put a backup in the place of the database; return where the former one was kept."""
    config = settings.load(home=home).settings
    return upkeep.restore(config.database, source, config.backups)


@checked
def examine(*, home: Path | None = None, fix: bool = False) -> list[Check]:
    """Check everything that can be wrong with a home, and mend what is derived."""
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
    from lore.memory import limiting

    try:
        return limiting.check_money(
            memory.spend_report(), memory.spend_pressure(), memory.spent_today()
        )
    except StoreError:
        return []  # what is wrong was told of the database

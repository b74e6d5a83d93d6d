"""A closed memory: for whoever goes on where the store cannot be opened, and only counts money."""

from __future__ import annotations

from lore.embed.embedder import NoEmbedder
from lore.memory.context import MemoryContext
from lore.memory.facade import Memory
from lore.recall.sources import Sources
from lore.redaction.redactor import EPHEMERAL_REDACTOR
from lore.settings import Settings
from lore.store.database import Database


def closed_memory(config: Settings) -> Memory:
    """Return a memory whose store is never touched: all that asks it is refused.

    What requests cost is counted in this process alone, as with a store that fails.
    """
    database = Database(config.database, busy_timeout_s=config.store_busy_timeout_s)
    database.close()
    sources = Sources(database, NoEmbedder(), config, owns_embedder=True)
    return Memory(MemoryContext(config, database, sources, EPHEMERAL_REDACTOR))

"""A closed memory: for whoever goes on where the store cannot be opened, and only counts money."""

from __future__ import annotations

from lore.embed.none import NoEmbedder
from lore.memory.front import Memory
from lore.recall.sources import Sources
from lore.redaction import UNKEPT
from lore.settings import Settings
from lore.store.db import Database


def closed_memory(config: Settings) -> Memory:
    """Return a memory whose store is never touched: all that asks it is refused.

    What requests cost is counted in this process alone, as with a store that fails.
    """
    database = Database(config.database, busy_timeout_s=config.store_busy_timeout_s)
    database.close()
    return Memory(
        config, database, Sources(database, NoEmbedder(), config, owns_embedder=True), UNKEPT
    )

"""The vector server of a memory: whether it has one, and by which hash it is known there."""

from __future__ import annotations

import hmac
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lore.errors import IndexUnavailable, InvalidInput, StoreError
from lore.index.nearest_items import VectorServer
from lore.redaction.redactor import home_key
from lore.store.database import find_meta, remove_meta, set_meta

if TYPE_CHECKING:
    from lore.settings import Settings
    from lore.store.database import Database

_MARK = "vectors_in"
"""The key of `meta` that says where a memory has vectors besides the database."""


def attach_vector_server(database: Database, config: Settings, owner: str = "") -> str:
    """Search the vectors of a memory where the settings say; return what is degraded.

    `owner` is the hash of its owner on a server of many. What a memory has in Qdrant is deleted
    there once its settings say `local` again.
    """
    is_marked = has_vectors_elsewhere(database)
    if config.vectors_engine == "local" and not is_marked:
        return ""
    is_of_many, owner = bool(owner), owner or _owner_hash(database, config)
    if config.vectors_engine == "local":
        return _leave(database, config, owner)
    if not config.vectors_url:
        msg = "'vectors.engine' is qdrant, but 'vectors.url' is not set."
        raise InvalidInput(msg, hint="Set the address of the Qdrant server (LORE_VECTORS_URL).")
    _require_package()
    if database.read_only:
        return ""  # nothing can be kept of it, so that the vectors in the database are searched
    if not is_marked:
        database.write(partial(set_meta, key=_MARK, value="qdrant"))
    database.vector_server = VectorServer(
        config.vectors_url, config.vectors_api_key, owner, is_of_many=is_of_many
    )
    return ""


def erase_vectors(config: Settings, owner: str) -> None:
    """Delete what Qdrant has of an owner, if the settings name one."""
    if config.vectors_url:
        _require_package()
        from lore.index.qdrant_points import erase_owner

        erase_owner(VectorServer(config.vectors_url, config.vectors_api_key, owner))


def has_vectors_elsewhere(database: Database) -> bool:
    """Return whether a memory has vectors on a server."""
    with database.read() as db:
        return find_meta(db, _MARK) is not None


def _leave(database: Database, config: Settings, owner: str) -> str:
    """Delete what Qdrant has of a memory that no longer uses it; return why that failed."""
    if database.read_only:
        return ""
    try:
        if not config.vectors_url:
            msg = "'vectors.url' is not set"
            raise IndexUnavailable(msg)
        erase_vectors(config, owner)
    except StoreError as error:
        reason = str(error).rstrip(".")
        return f"Qdrant still has vectors of this memory, and they cannot be deleted: {reason}."
    database.write(partial(remove_meta, key=_MARK))
    return ""


def _owner_hash(database: Database, config: Settings) -> str:
    """Return the HMAC-SHA-256 of the owner's name, with a key that stays with the memory.

    A memory on PostgreSQL may be used from several homes; its epoch is random and never changes.
    """
    if not config.store_url:
        return hmac.digest(home_key(config, "vectors"), b"owner", "sha256").hex()
    with database.read() as db:
        key = str(find_meta(db, "epoch"))
    return hmac.digest(key.encode(), config.store_owner.encode(), "sha256").hex()


def _require_package() -> None:
    if find_spec("qdrant_client") is None:
        msg = "Vectors in Qdrant need the package qdrant-client."
        raise StoreError(msg, hint="Install agent-lore[qdrant].")

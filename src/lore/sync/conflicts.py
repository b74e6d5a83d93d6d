"""Conflicting edits: the text that lost stays readable and, where it matters, wants a decision."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lore import clock
from lore.records import UNASKED_TRUST
from lore.store import fragments, graph, history, items, sync_writes
from lore.store.database import Connection
from lore.store.fragments import NewFragment
from lore.store.sync_shapes import text_digest
from lore.sync.registers import LATEST_US, MOST_PAST, Register, is_concurrent, rank
from lore.text import entities, words


def keep_loser(
    db: Connection, id_: str, one: Register | None, other: Register | None, now: datetime
) -> bool:
    """Keep the text that lost against a concurrent edit; return whether there was one.

    All machines that see the conflict keep the same: a former version, and if the texts matter, a
    fragment of its own that contradicts the other one, for `lore conflicts`.
    """
    if one is None or other is None or not is_concurrent(one, other):
        return False
    lost, won = sorted((one, other), key=lambda register: rank("text", register))
    if _words(lost.value) == _words(won.value):
        return False
    n = items.find_number(db, id_)
    if n is None or (len(won.past) >= MOST_PAST and _was_replaced(db, n, lost.value)):
        return False
    sync_writes.put_version(
        db, n, content=lost.value["content"], summary=lost.value["summary"],
        changed_at=min(lost.us, LATEST_US), reason="conflict",
    )  # fmt: skip
    if _matters(db, n, lost.value, won.value):
        _add_rival(db, n, id_, lost, now)
    return True


def _was_replaced(db: Connection, n: int, text: Mapping[str, Any]) -> bool:
    """Return whether a text is a former version: whoever replaced it had seen it.

    This decides after more edits than a register has stamps of. The versions are here before the
    edits that came after them.
    """
    return sync_writes.has_version(db, n, text_digest(text["content"], text["summary"]))


def _words(text: Mapping[str, Any]) -> list[str]:
    return words.split(text["content"])


def _matters(db: Connection, n: int, *texts: Mapping[str, Any]) -> bool:
    is_trusted = all(text["trust"] >= UNASKED_TRUST and text["kind"] != "episode" for text in texts)
    if not is_trusted or fragments.is_deleted(db, n):
        return False
    return fragments.get(db, n).superseded_by is None


def _add_rival(db: Connection, n: int, id_: str, lost: Register, now: datetime) -> None:
    text, at = lost.value, clock.from_us(min(lost.us, LATEST_US))
    rival = rival_id(id_, text["content"], text["summary"], lost.us)
    if items.find_number(db, rival) is not None or history.find_tombstones(db, [rival]):
        return
    item = items.resolve(db, id_)
    rival_n = fragments.add(
        db,
        NewFragment(
            id=rival,
            content=text["content"],
            summary=text["summary"],
            kind=text["kind"],
            created_at=at,
            payload=text["payload"],
            origin=text["origin"],
            trust=text["trust"],
            project_n=item.project_n,
            session_n=item.session_n,
            source_messages=(id_,),  # it is forgotten with the fragment that it is a text of
            mentions=tuple(entities.fragment_mentions(text["content"], text["summary"])),
            metadata={"conflict_of": id_},
        ),
        now=now,
    )
    graph.put_edge(db, n, rival_n, "contradicts", now=at)


def rival_id(id_: str, content: str, summary: str, us: int) -> str:
    """Return the id that every machine gives to a text that lost: a UUIDv7 made of its digest."""
    seed = hashlib.sha256(f"{id_}\0{text_digest(content, summary)}\0{us}".encode()).digest()
    milliseconds = (us // 1_000).to_bytes(6, "big")
    raw = bytearray(milliseconds + seed[:10])
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))

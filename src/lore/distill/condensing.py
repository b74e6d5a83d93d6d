"""Condensing: many distillations of one session become one of the next generation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from lore import clock
from lore.distill import tracing
from lore.distill.distilling import Limits, Redact
from lore.llm import Digester
from lore.records import Distillation, Log
from lore.store import distillations, items, sessions
from lore.store.db import Connection, Database
from lore.text import tokens

META_THRESHOLD, KEPT = 20, 5
"""So many distillations of generation 0 become one, but for the newest."""


def condense_session(
    database: Database,
    digester: Digester,
    session: str,
    *,
    threshold: int = META_THRESHOLD,
    redact: Redact = str,
) -> str:
    """Condense a session's distillations once there are enough; return the new one's id, or ''.

    Those it replaces are archived and still found. One whose successor is gone stands for itself
    again.
    """
    with database.read() as db:
        session_n = sessions.get_number(db, session)
        found = distillations.of_session(db, session_n)
    if _is_orphaned(found):
        database.write(partial(_restore, session_n=session_n))
        with database.read() as db:
            found = distillations.of_session(db, session_n)
    with database.read() as db:
        ends = distillations.extents(db, session_n)
    # In the order of the talk: clocks of agents go back, ordinals do not.
    found = sorted((one for one in found if one.id in ends), key=lambda one: ends[one.id][0])
    open_ = [one for one in found if one.generation == 0 and not one.archived]
    if len(open_) < threshold:
        return ""
    former = [one for one in found if one.generation > 0 and not one.archived]
    replaced = open_[:-KEPT]
    source_tokens = sum(one.tokens for one in (*former, *replaced))
    log = digester.condense(
        [one.text for one in replaced],
        "\n".join(one.text for one in former),
        limit_tokens=Limits().of(source_tokens),
    )
    if not log.lines or tokens.count(log.text) > source_tokens:
        return ""
    told = [ends[one.id] for one in (*former, *replaced)]
    first, last = min(end[:2] for end in told)[1], max(end[2:] for end in told)[1]
    new = _distillation(log, [*former, *replaced], (first, last), redact)
    kept = database.write(
        partial(
            _keep, session_n=session_n, new=new, replaced=[*former, *replaced], now=database.now()
        )
    )
    return new.id if kept else ""


def _is_orphaned(found: Sequence[Distillation]) -> bool:
    """Tell whether distillations are archived for one that is gone."""
    stands = any(one.generation > 0 and not one.archived for one in found)
    return not stands and any(one.archived for one in found)


def _restore(db: Connection, *, session_n: int) -> None:
    found = distillations.of_session(db, session_n)
    if _is_orphaned(found):
        ids = [one.id for one in found if one.generation == 0]
        distillations.archive(db, list(items.numbers_of(db, ids).values()), archived=False)


def _distillation(
    log: Log, replaced: Sequence[Distillation], ends: tuple[str, str], redact: Redact
) -> Distillation:
    latest = max(one.created_at for one in replaced)
    text = "\n".join(redact(line.text) for line in log.lines)
    return Distillation(
        id=clock.new_id(latest),
        session_id=replaced[0].session_id,
        generation=1,
        text=text,
        from_message=ends[0],
        to_message=ends[1],
        tokens=tokens.count(text),
        source_tokens=sum(one.source_tokens for one in replaced),
        archived=False,
        created_at=latest,
        sources=retold([line.text for line in log.lines], replaced),
    )


def retold(lines: Sequence[str], replaced: Sequence[Distillation]) -> tuple[tuple[int, ...], ...]:
    """Return for each line the ordinals of the messages that its former lines told."""
    former = [
        tracing.text_of(text, ordinals)
        for one in replaced
        for text, ordinals in zip(one.text.split("\n"), one.sources, strict=False)
        if ordinals
    ]
    return tuple(tracing.trace(line, former) for line in lines)


def _keep(
    db: Connection,
    *,
    session_n: int,
    new: Distillation,
    replaced: Sequence[Distillation],
    now: datetime,
) -> bool:
    """Store the new one in place of the others, unless someone was quicker or one is gone."""
    ns = items.numbers_of(db, [one.id for one in replaced])
    known = distillations.by_number(db, list(ns.values()))
    if len(ns) < len(replaced) or any(one.archived for one in known.values()):
        return False
    distillations.add(db, session_n, new, now=now)
    distillations.archive(db, list(ns.values()))
    return True

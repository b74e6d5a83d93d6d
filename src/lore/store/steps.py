"""Steps: what a cycle changed, one row each, with what is needed to take it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import orjson

from lore import clock
from lore.records import FragmentVersion
from lore.store import changes, cycles, edges, fragments, items, keywords, mentions
from lore.store.packing import moment
from lore.store.sqlite import Connection, among, numbers
from lore.text import entities

Verb = Literal[
    "edge_added", "edge_dropped", "depth", "superseded", "hidden", "reworded", "added", "decayed",
    "confirmed", "counted", "strengthened",
]  # fmt: skip


class Step(NamedTuple):
    """One change: `value` is the former weight, depth or version, `at` the former moment."""

    verb: Verb
    fragment_n: int | None = None
    other_n: int | None = None
    kind: str = ""
    value: float | None = None
    note: str = ""
    at: int | None = None


_FIELDS = ", ".join(Step._fields)


def record(db: Connection, cycle_n: int, *steps: Step) -> None:
    """Write down what is changed now."""
    db.run_many(
        f"INSERT INTO steps (cycle_n, {_FIELDS}) VALUES (:cycle_n, :verb, :fragment_n, :other_n,"
        " :kind, :value, :note, :at)",
        [{**step._asdict(), "cycle_n": cycle_n} for step in steps],
    )


def of_cycle(db: Connection, cycle_n: int, verb: Verb | None = None) -> list[Step]:
    """Return what a cycle changed, last first."""
    rows = db.rows(
        f"SELECT {_FIELDS} FROM steps WHERE cycle_n = :cycle_n"
        " AND (:verb IS NULL OR verb = :verb) ORDER BY n DESC",
        cycle_n=cycle_n,
        verb=verb,
    )
    return [Step(*row) for row in rows]


def of_fragment(db: Connection, n: int) -> list[tuple[datetime, Verb]]:
    """Return when cycles changed a fragment, and how, as long as that can be taken back."""
    rows = db.rows(
        "SELECT c.started_at, s.verb FROM steps s JOIN cycles c ON c.n = s.cycle_n"
        " WHERE s.fragment_n = :n ORDER BY s.n",
        n=n,
    )
    return [(moment(at), verb) for at, verb in rows]


def drop(db: Connection, cycle_ns: Sequence[int]) -> None:
    """Drop the steps of cycles that were taken back, or cannot be any more."""
    db.run(f"DELETE FROM steps WHERE {among('cycle_n', 'ns')}", ns=numbers(cycle_ns))


def add_edge(
    db: Connection,
    cycle_n: int,
    edge: edges.EdgeRow,
    *,
    now: datetime,
    note: str = "",
) -> bool:
    """Draw an edge that is not there yet; tell whether it is new."""
    if edges.find(db, edge.source_n, edge.target_n, edge.kind) is not None:
        return False
    edges.put(db, *edge[:3], now=now, weight=edge.weight, note=note)
    record(db, cycle_n, Step("edge_added", edge.source_n, edge.target_n, edge.kind))
    return True


def drop_edge(db: Connection, cycle_n: int, source_n: int, target_n: int, kind: str) -> None:
    """Take an edge away, if it is there."""
    row = db.find(
        "DELETE FROM edges WHERE source_n = :source_n AND target_n = :target_n AND kind = :kind"
        " RETURNING weight, note, created_at",
        source_n=source_n,
        target_n=target_n,
        kind=kind,
    )
    if row:
        weight, note, at = row
        record(db, cycle_n, Step("edge_dropped", source_n, target_n, kind, weight, note, at))


def supersede(db: Connection, cycle_n: int, older: int, newer: int, *, now: datetime) -> None:
    """Let a newer fragment replace an older one."""
    record(db, cycle_n, before_superseding(db, older, newer))
    add_edge(db, cycle_n, edges.EdgeRow(newer, older, "supersedes", 1.0), now=now)
    fragments.set_superseded(db, older, items.ids_of(db, [newer])[newer], now=now)


def reparent(db: Connection, cycle_n: int, child: int, parent: int, *, now: datetime) -> None:
    """Hang a fragment with all below it under another one, at the depths that belong there."""
    former = edges.find_parent(db, child)
    if former == parent:
        return
    if former is not None:
        drop_edge(db, cycle_n, former, child, "hierarchical")
    add_edge(db, cycle_n, edges.EdgeRow(parent, child, "hierarchical", 1.0), now=now)
    depth = int(db.value("SELECT depth FROM fragments WHERE n = :n", n=parent)) + 1
    _set_depths(db, cycle_n, child, depth)


def _set_depths(db: Connection, cycle_n: int, top: int, depth: int) -> None:
    rows = _misplaced(db, top, depth)
    record(db, cycle_n, *(Step("depth", n, value=old) for n, _, old in rows))
    for n, fresh, _ in rows:
        fragments.set_depth(db, n, fresh)


def take_place(db: Connection, cycle_n: int, child: int, parent: int, *, now: datetime) -> None:
    """Let a child stand where its parent stands, and its siblings below it."""
    above = edges.find_parent(db, parent)
    if above is not None:
        reparent(db, cycle_n, child, above, now=now)
    else:
        drop_edge(db, cycle_n, parent, child, "hierarchical")
        _set_depths(db, cycle_n, child, 0)
    for sibling in edges.all_children(db, parent):
        reparent(db, cycle_n, sibling, child, now=now)


def _misplaced(db: Connection, top: int, depth: int) -> list[tuple[int, int, int]]:
    """Return what has another depth than it should, if the top has this one: (n, should, has)."""
    rows = db.rows(
        "WITH RECURSIVE below (n, depth) AS (SELECT :top, :depth UNION"
        " SELECT e.target_n, b.depth + 1 FROM below b JOIN edges e ON e.source_n = b.n"
        " WHERE e.kind = 'hierarchical' AND b.depth < 64)"
        " SELECT b.n, b.depth, f.depth FROM below b JOIN fragments f ON f.n = b.n"
        " WHERE b.depth <> f.depth",
        top=top,
        depth=depth,
    )
    return [(n, should, has) for n, should, has in rows]


def hide(db: Connection, cycle_n: int, n: int, *, now: datetime) -> None:
    """Hide a fragment until it is removed for good."""
    record(db, cycle_n, Step("hidden", n, at=clock.to_us(now)))
    fragments.set_deleted(db, n, now, now=now)


def reword(
    db: Connection, cycle_n: int, n: int, content: str, summary: str, *, now: datetime
) -> None:
    """Give a fragment new words in Lore's own name; the former ones stay as a version."""
    version, at = db.rows("SELECT version, updated_at FROM fragments WHERE n = :n", n=n)[0]
    record(db, cycle_n, Step("reworded", n, value=version, at=at))
    fragments.update(
        db,
        n,
        content=content,
        summary=summary,
        mentioned=entities.of_fragment(content, summary),
        now=now,
        reason="overview",
        reinforces=False,
    )


def find_own_words(db: Connection, n: int) -> FragmentVersion | None:
    """Return what a fragment said before the overviews that it has now, if it has one."""
    own = None
    for former in reversed(fragments.versions(db, n)):
        if former.reason != "overview":
            break
        own = former
    return own


def learned(db: Connection, n: int) -> Step:
    """Return that a fragment is new, and on which messages it stands."""
    sources = db.value("SELECT source_messages FROM fragments WHERE n = :n", n=n)
    return Step("added", n, note=sources)


def before_confirming(db: Connection, n: int) -> Step:
    """Return how a fragment stands before it is confirmed, perhaps in newer words."""
    version, confidence, sources, at = db.rows(
        "SELECT version, confidence, source_messages, updated_at FROM fragments WHERE n = :n", n=n
    )[0]
    note = orjson.dumps([confidence, sources]).decode()
    return Step("confirmed", n, value=version, note=note, at=at)


def before_counting(db: Connection, n: int, project_n: int) -> Step:
    """Return how often a fragment was confirmed in a project before that is counted once more."""
    row = db.find(
        "SELECT times, at FROM confirmations WHERE fragment_n = :n AND project_n = :project_n",
        n=n,
        project_n=project_n,
    )
    times, at = row or (0, None)
    return Step("counted", n, kind=str(project_n), value=times, at=at)


def before_superseding(db: Connection, older: int, newer: int) -> Step:
    """Return how a fragment stands before a newer one takes its place."""
    former, valid_to = db.rows(
        "SELECT superseded_by, valid_to FROM fragments WHERE n = :n", n=older
    )[0]
    return Step("superseded", older, newer, note=former or "", at=valid_to)


def before_strengthening(db: Connection, n: int, *, now: datetime) -> Step:
    """Return how strong a fragment and its neighbours are before it is strengthened."""
    rows = db.rows(
        f"SELECT n, {', '.join(_STRENGTHS)} FROM fragments WHERE n = :n OR n IN"
        " (SELECT target_n FROM edges WHERE source_n = :n UNION"
        " SELECT source_n FROM edges WHERE target_n = :n) ORDER BY n",
        n=n,
    )
    note = orjson.dumps([list(row) for row in rows]).decode()
    return Step("strengthened", n, note=note, at=clock.to_us(now))


_STRENGTHS = (
    "access_count", "last_accessed", "last_reinforced", "relevance", "boost", "boosted_at",
)  # fmt: skip


def take_back(db: Connection, step: Step, *, now: datetime) -> bool:
    """Take one step back; False where something was changed since, which then stands."""
    return _REVERSES[step.verb](db, step, now)


def _rub_out(db: Connection, step: Step, _now: datetime) -> bool:
    edges.remove(db, step.fragment_n or 0, step.other_n or 0, step.kind)  # type: ignore[arg-type]
    return True


def _move_back(db: Connection, step: Step, _now: datetime) -> bool:
    fragments.set_depth(db, step.fragment_n or 0, int(step.value or 0))
    return True


def _unmake(db: Connection, step: Step, now: datetime) -> bool:
    """Remove what a cycle made, unless it was changed since, or something stands on it."""
    n = step.fragment_n or 0
    row = db.find("SELECT version, source_messages FROM fragments WHERE n = :n", n=n)
    if row is None or row[0] != 1 or (step.note and row[1] != step.note):
        return False
    if db.find(
        "SELECT 1 FROM edges WHERE source_n = :n AND kind IN ('hierarchical', 'supersedes')", n=n
    ):
        return False
    remove(db, [n], now=now)
    return True


def _put_back(db: Connection, step: Step, _now: datetime) -> bool:
    """Draw an edge as it was, unless another of its sort was drawn since."""
    if step.kind == "hierarchical" and edges.find_parent(db, step.other_n or 0) is not None:
        return False
    done = db.run(
        "INSERT INTO edges (source_n, target_n, kind, weight, note, created_at)"
        " VALUES (:source_n, :target_n, :kind, :weight, :note, :at) ON CONFLICT DO NOTHING",
        source_n=step.fragment_n,
        target_n=step.other_n,
        kind=step.kind,
        weight=step.value,
        note=step.note,
        at=step.at,
    )
    return bool(done)


def _let_stand(db: Connection, step: Step, now: datetime) -> bool:
    n, newer = step.fragment_n or 0, step.other_n or 0
    holder = db.value("SELECT superseded_by FROM fragments WHERE n = :n", n=n)
    if holder != items.ids_of(db, [newer]).get(newer):
        return False
    edges.remove(db, newer, n, "supersedes")
    fragments.set_superseded(db, n, step.note or None, now=now)
    db.run("UPDATE fragments SET valid_to = :at WHERE n = :n", at=step.at, n=n)
    return True


def _show(db: Connection, step: Step, now: datetime) -> bool:
    n = step.fragment_n or 0
    if db.value("SELECT deleted_at FROM fragments WHERE n = :n", n=n) != step.at:
        return False
    fragments.set_deleted(db, n, None, now=now)
    return True


def _say_as_before(db: Connection, step: Step, now: datetime) -> bool:
    """Give a fragment its former words back, and forget that it ever had others."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    row = db.find(
        "SELECT v.content, v.summary FROM fragment_versions v JOIN fragments f"
        " ON f.n = v.fragment_n WHERE f.n = :n AND v.version = :version"
        " AND f.version = v.version + 1 AND v.reason = 'overview'",
        n=n,
        version=version,
    )
    if row is None:
        return False
    content, summary = row
    _reset(db, n, content, summary, version, now=now)
    db.run(
        "UPDATE fragments SET updated_at = :at, overview_at = :now WHERE n = :n",
        at=step.at,
        now=clock.to_us(now),
        n=n,
    )
    return True


def _doubt_again(db: Connection, step: Step, now: datetime) -> bool:
    """Let a fragment be as sure as before, and say what it said; False if it was changed since."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    confidence, sources = orjson.loads(step.note)
    present = db.value("SELECT version FROM fragments WHERE n = :n", n=n)
    if present not in (version, version + 1):
        return False
    if present == version + 1:
        content, summary = db.rows(
            "SELECT content, summary FROM fragment_versions"
            " WHERE fragment_n = :n AND version = :version",
            n=n,
            version=version,
        )[0]
        _reset(db, n, content, summary, version, now=now)
    db.run(
        "UPDATE fragments SET confidence = :confidence, source_messages = :sources,"
        " updated_at = :at WHERE n = :n",
        confidence=confidence,
        sources=sources,
        at=step.at,
        n=n,
    )
    return True


def _uncount(db: Connection, step: Step, _now: datetime) -> bool:
    """Count a confirmation less; those that came since still count."""
    row = {"n": step.fragment_n, "project_n": int(step.kind)}
    done = db.run(
        "UPDATE confirmations SET times = times - 1, at = CASE WHEN times - 1 = :times"
        " THEN coalesce(:at, at) ELSE at END WHERE fragment_n = :n AND project_n = :project_n",
        times=int(step.value or 0),
        at=step.at,
        **row,
    )
    db.run(
        "DELETE FROM confirmations WHERE fragment_n = :n AND project_n = :project_n AND times <= 0",
        **row,
    )
    return bool(done)


def _weaken(db: Connection, step: Step, _now: datetime) -> bool:
    """Let fragments be as strong as before, but for those that were read since."""
    done = 0
    for n, *former in orjson.loads(step.note):
        done += db.run(
            f"UPDATE fragments SET {', '.join(f'{name} = :{name}' for name in _STRENGTHS)}"
            " WHERE n = :n AND coalesce(last_accessed, 0) <= :at AND last_reinforced <= :at"
            " AND boosted_at <= :at",
            n=n,
            at=step.at,
            **dict(zip(_STRENGTHS, former, strict=True)),
        )
    return bool(done)


_REVERSES: dict[Verb, Callable[[Connection, Step, datetime], bool]] = {
    "edge_added": _rub_out,
    "edge_dropped": _put_back,
    "depth": _move_back,
    "superseded": _let_stand,
    "hidden": _show,
    "reworded": _say_as_before,
    "added": _unmake,
    "confirmed": _doubt_again,
    "counted": _uncount,
    "strengthened": _weaken,
}
"""How each step is taken back; `store.weights` has the way back for what decayed."""


def _reset(
    db: Connection, n: int, content: str, summary: str, version: int, *, now: datetime
) -> None:
    fragments.update(
        db,
        n,
        content=content,
        summary=summary,
        mentioned=entities.of_fragment(content, summary),
        now=now,
        reason="undo",
        reinforces=False,
    )
    db.run(
        "DELETE FROM fragment_versions WHERE fragment_n = :n AND version >= :version",
        n=n,
        version=version,
    )
    db.run(
        "UPDATE fragments SET version = :version, overview_at = NULL WHERE n = :n",
        version=version,
        n=n,
    )


def settle_trees(db: Connection, done: Sequence[Step], *, now: datetime) -> None:
    """Give what was moved back a parent and its depth, also where the former one is gone."""
    moved = [step for step in done if step.kind == "hierarchical"]
    for step in moved:
        child = step.other_n or 0
        lost = fragments.by_number(db, [child]) and edges.find_parent(db, child) is None
        if step.verb == "edge_added" and lost:
            edges.put(db, step.fragment_n or 0, child, "hierarchical", now=now)
    for child in {step.other_n or 0 for step in moved}:
        for n, depth, _ in _misplaced(db, child, len(edges.ancestors(db, child))):
            fragments.set_depth(db, n, depth)


def withdraw_overviews(db: Connection, ns: Sequence[int], *, now: datetime) -> int:
    """Give the roots above fragments the words that they had before any overview; count them.

    An overview quotes what stands below it, so it goes with what goes.
    """
    rows = db.rows(
        "WITH RECURSIVE above (n) AS (SELECT e.source_n FROM edges e WHERE"
        f" e.kind = 'hierarchical' AND {among('e.target_n', 'ns')} UNION SELECT e.source_n"
        " FROM above a JOIN edges e ON e.target_n = a.n WHERE e.kind = 'hierarchical')"
        " SELECT v.fragment_n, min(v.version) FROM fragment_versions v JOIN above a"
        f" ON a.n = v.fragment_n WHERE v.reason = 'overview' AND NOT {among('a.n', 'ns')}"
        " GROUP BY v.fragment_n",
        ns=numbers(ns),
    )
    for n, version in rows:
        kept = fragments.versions(db, n)
        if kept[-1].reason == "overview":
            first = next(one for one in kept if one.version == version)
            _reset(db, n, first.content, first.summary, version, now=now)
        else:
            db.run(
                "DELETE FROM fragment_versions WHERE fragment_n = :n AND version > :version",
                n=n,
                version=version,
            )
    return len(rows)


def remove(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Remove what a cycle made, as if it had never been there; other machines are told."""
    ids = items.ids_of(db, ns)
    keywords.remove(db, ns, type="fragment")
    mentions.remove(db, ns)
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))
    cycles.drop_lines(db, list(ids.values()))
    changes.bury(db, list(ids.values()), now)

"""Changes that a consolidation cycle makes to fragments and edges, and how each one is undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import orjson

from lore import clock
from lore.records import EdgeKind, FragmentVersion
from lore.relevance import USED_DAYS, relevance
from lore.store import consolidation, fragments, graph, history, items, keywords, replacements
from lore.store.codec import pack_json
from lore.store.consolidation import Step, StepRecorder, StepVerb, ignore_step
from lore.store.fragments import LIVING_FRAGMENT
from lore.store.graph import EdgeRow
from lore.store.replacements import Relation, Replacement
from lore.store.sql_connection import Connection, among, int_array
from lore.text import entities


def add_edge(
    db: Connection,
    edge: EdgeRow,
    *,
    now: datetime,
    recorder: StepRecorder = ignore_step,
    note: str = "",
) -> bool:
    """Add an edge and return whether it is new; an existing one keeps its weight and note."""
    if graph.find_edge(db, edge.source_n, edge.target_n, edge.kind) is not None:
        return False
    recorder(db, Step("edge_added", edge.source_n, edge.target_n, edge.kind))
    graph.put_edge(db, *edge[:3], now=now, weight=edge.weight, note=note)
    return True


def drop_edge(
    db: Connection,
    source_n: int,
    target_n: int,
    kind: EdgeKind,
    *,
    recorder: StepRecorder = ignore_step,
) -> None:
    """Delete an edge, if it exists."""
    row = graph.remove_edge(db, source_n, target_n, kind)
    if row:
        weight, note, at = row
        recorder(db, Step("edge_dropped", source_n, target_n, kind, weight, note, at))


def _undo_add_edge(db: Connection, step: Step, _now: datetime) -> bool:
    """Delete an edge that was added."""
    graph.remove_edge(db, step.fragment_n or 0, step.other_n or 0, step.kind)  # type: ignore[arg-type]
    return True


def _undo_drop_edge(db: Connection, step: Step, _now: datetime) -> bool:
    """Restore a deleted edge, unless the child has a parent again."""
    if step.kind == "hierarchical" and graph.find_parent(db, step.other_n or 0) is not None:
        return False
    return db.insert_unless_exists(
        "edges",
        source_n=step.fragment_n,
        target_n=step.other_n,
        kind=step.kind,
        weight=step.value,
        note=step.note,
        created_at=step.at,
    )


def reparent(
    db: Connection,
    child: int,
    parent: int | None,
    *,
    now: datetime,
    recorder: StepRecorder = ignore_step,
) -> None:
    """Move a fragment with its descendants under another one, or make it a root.

    All of them get their new depths. A fragment must not be moved below itself.
    """
    former = graph.find_parent(db, child)
    if former is not None:
        if former == parent:
            return
        drop_edge(db, former, child, "hierarchical", recorder=recorder)
    depth = 0
    if parent is not None:
        edge = EdgeRow(parent, child, "hierarchical", 1.0)
        add_edge(db, edge, now=now, recorder=recorder)
        depth = int(db.value("SELECT depth FROM fragments WHERE n = :n", n=parent)) + 1
    set_depths(db, child, depth, recorder=recorder)


def replace_parent(
    db: Connection, child: int, parent: int, *, now: datetime, recorder: StepRecorder = ignore_step
) -> None:
    """Put a child in the place of its parent, and its siblings below it."""
    reparent(db, child, graph.find_parent(db, parent), now=now, recorder=recorder)
    for sibling in graph.children(db, parent, deleted=True):
        reparent(db, sibling, child, now=now, recorder=recorder)


def set_depths(
    db: Connection, top: int, depth: int, *, recorder: StepRecorder = ignore_step
) -> None:
    """Set the depth of a fragment, and the depths of its descendants accordingly."""
    sql = (
        "WITH RECURSIVE below (n, depth) AS"
        " (SELECT CAST(:top AS INTEGER), CAST(:depth AS INTEGER) UNION"
        " SELECT e.target_n, b.depth + 1 FROM below b JOIN edges e ON e.source_n = b.n"
        " WHERE e.kind = 'hierarchical' AND b.depth < 64)"
        " SELECT b.n, b.depth, f.depth FROM below b JOIN fragments f ON f.n = b.n"
        " WHERE b.depth <> f.depth"
    )
    wrong = db.rows(sql, top=top, depth=depth)
    for n, _, old in wrong:
        recorder(db, Step("depth", n, value=old))
    for n, right, _ in wrong:
        db.update("fragments", n, depth=right)


def _undo_depth(db: Connection, step: Step, _now: datetime) -> bool:
    """Restore the former depth of a fragment."""
    db.update("fragments", step.fragment_n or 0, depth=int(step.value or 0))
    return True


def _undo_supersede(db: Connection, step: Step, now: datetime) -> bool:
    """Restore the older fragment, unless a third one superseded it."""
    n, newer = step.fragment_n or 0, step.other_n or 0
    holder = db.value("SELECT superseded_by FROM fragments WHERE n = :n", n=n)
    if holder != items.ids_of(db, [newer]).get(newer):
        return False
    graph.remove_edge(db, newer, n, "supersedes")
    fragments.set_superseded(db, n, step.note or None, now=now)
    db.update("fragments", n, valid_to=step.at)
    return True


def restore_parents(db: Connection, undone: Sequence[Step], *, now: datetime) -> None:
    """Give fragments that were moved back a parent and a depth, even if the former one is gone."""
    moved = [step for step in undone if step.kind == "hierarchical"]
    for step in moved:
        child = step.other_n or 0
        lost = fragments.by_number(db, [child]) and graph.find_parent(db, child) is None
        if step.verb == "edge_added" and lost:
            graph.put_edge(db, step.fragment_n or 0, child, "hierarchical", now=now)
    for child in {step.other_n or 0 for step in moved}:
        set_depths(db, child, len(graph.ancestors(db, child)))


def supersede(
    db: Connection, older: int, newer: int, *, now: datetime, recorder: StepRecorder = ignore_step
) -> None:
    """Mark an older fragment as superseded by a newer one."""
    former, valid_to = db.rows(
        "SELECT superseded_by, valid_to FROM fragments WHERE n = :n", n=older
    )[0]
    recorder(db, Step("superseded", older, newer, note=former or "", at=valid_to))
    add_edge(db, EdgeRow(newer, older, "supersedes", 1.0), now=now, recorder=recorder)
    fragments.set_superseded(db, older, items.ids_of(db, [newer])[newer], now=now)


def write_overview(
    db: Connection,
    n: int,
    content: str,
    summary: str,
    *,
    now: datetime,
    recorder: StepRecorder = ignore_step,
) -> None:
    """Replace a root's text by an overview; the former text is kept as a version."""
    version, at = db.rows("SELECT version, updated_at FROM fragments WHERE n = :n", n=n)[0]
    recorder(db, Step("reworded", n, value=version, at=at))
    _set_text(db, n, content, summary, "overview", now=now)


def find_text_before_overview(db: Connection, n: int) -> FragmentVersion | None:
    """Return the version that a fragment had before its current overview, or None."""
    own = None
    for former in reversed(fragments.get_versions(db, n)):
        if former.reason != "overview":
            break
        own = former
    return own


def withdraw_overviews(db: Connection, ns: Sequence[int], *, now: datetime) -> int:
    """Restore the texts from before any overview on the ancestors of fragments; count them.

    An overview quotes its descendants, so it is removed with them.
    """
    rows = db.rows(
        "WITH RECURSIVE above (n) AS (SELECT e.source_n FROM edges e WHERE"
        f" e.kind = 'hierarchical' AND {among('e.target_n', 'ns')} UNION SELECT e.source_n"
        " FROM above a JOIN edges e ON e.target_n = a.n WHERE e.kind = 'hierarchical')"
        " SELECT v.fragment_n, min(v.version) FROM fragment_versions v JOIN above a"
        f" ON a.n = v.fragment_n WHERE v.reason = 'overview' AND NOT {among('a.n', 'ns')}"
        " GROUP BY v.fragment_n",
        ns=int_array(ns),
    )
    for n, version in rows:
        versions = fragments.get_versions(db, n)
        if versions[-1].reason == "overview":
            first = next(one for one in versions if one.version == version)
            reset_to_version(db, n, first.content, first.summary, version, now=now)
        else:
            _drop_versions(db, n, version + 1)
    return len(rows)


def _undo_overview(db: Connection, step: Step, now: datetime) -> bool:
    """Restore the text from before an overview, and delete the overview's version."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    sql = (
        "SELECT v.content, v.summary FROM fragment_versions v JOIN fragments f"
        " ON f.n = v.fragment_n WHERE f.n = :n AND v.version = :version"
        " AND f.version = v.version + 1 AND v.reason = 'overview'"
    )
    row = db.find(sql, n=n, version=version)
    if row is None:
        return False
    content, summary = row
    reset_to_version(db, n, content, summary, version, now=now)
    db.update("fragments", n, updated_at=step.at, overview_at=clock.to_us(now))
    return True


def reset_to_version(
    db: Connection, n: int, content: str, summary: str, version: int, *, now: datetime
) -> None:
    """Restore the text of a version, and delete later versions."""
    _set_text(db, n, content, summary, "undo", now=now)
    _drop_versions(db, n, version)
    db.update("fragments", n, version=version, overview_at=None)


def _drop_versions(db: Connection, n: int, first: int) -> None:
    sql = "DELETE FROM fragment_versions WHERE fragment_n = :n AND version >= :first"
    db.run(sql, n=n, first=first)


def _undo_creation(db: Connection, step: Step, now: datetime) -> bool:
    """Delete a fragment that a cycle created, unless it was changed or has dependents.

    The deletion leaves a tombstone for other machines.
    """
    n = step.fragment_n or 0
    row = db.find("SELECT version, source_messages FROM fragments WHERE n = :n", n=n)
    if row is None or row[0] != 1 or (step.note and row[1] != step.note):
        return False
    if db.find(
        "SELECT 1 FROM edges WHERE source_n = :n AND kind IN ('hierarchical', 'supersedes')", n=n
    ):
        return False
    ids = list(items.ids_of(db, [n]).values())
    keywords.remove(db, [n], type="fragment")
    graph.remove_mentions(db, [n])
    db.run("DELETE FROM items WHERE n = :n", n=n)
    consolidation.redact_reports(db, ids)
    history.add_tombstones(db, ids, now)
    return True


def _undo_hide(db: Connection, step: Step, now: datetime) -> bool:
    """Show a hidden fragment again, unless somebody else deleted it since."""
    n = step.fragment_n or 0
    if fragments.deletion_times(db, [n]).get(n) != step.at:
        return False
    fragments.set_deleted(db, n, None, now=now)
    return True


def _undo_confirmation(db: Connection, step: Step, now: datetime) -> bool:
    """Restore confidence, sources and text from before; return False if it changed since."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    confidence, sources = orjson.loads(step.note)
    present = db.value("SELECT version FROM fragments WHERE n = :n", n=n)
    if present not in (version, version + 1):
        return False
    if present == version + 1:
        sql = (
            "SELECT content, summary FROM fragment_versions"
            " WHERE fragment_n = :n AND version = :version"
        )
        ((content, summary),) = db.rows(sql, n=n, version=version)
        reset_to_version(db, n, content, summary, version, now=now)
    db.update("fragments", n, confidence=confidence, source_messages=sources, updated_at=step.at)
    return True


def _undo_count(db: Connection, step: Step, _now: datetime) -> bool:
    """Subtract one confirmation; later ones still count."""
    row = {"n": step.fragment_n, "project_n": int(step.kind)}
    sql = (
        "UPDATE confirmations SET times = times - 1, at = CASE WHEN times - 1 = :times"
        " THEN coalesce(:at, at) ELSE at END WHERE fragment_n = :n AND project_n = :project_n"
    )
    changed = db.run(sql, times=int(step.value or 0), at=step.at, **row)
    db.run(
        "DELETE FROM confirmations WHERE fragment_n = :n AND project_n = :project_n AND times <= 0",
        **row,
    )
    return bool(changed)


def _set_text(
    db: Connection, n: int, content: str, summary: str, reason: str, *, now: datetime
) -> None:
    """Replace a fragment's text without reinforcing it."""
    fragments.update(
        db,
        n,
        content=content,
        summary=summary,
        mentioned=entities.fragment_mentions(content, summary),
        now=now,
        reason=reason,
        reinforces=False,
    )


def hide_fragment(
    db: Connection, n: int, *, now: datetime, recorder: StepRecorder = ignore_step
) -> None:
    """Hide a fragment until it is deleted for good."""
    recorder(db, Step("hidden", n, at=clock.to_us(now)))
    fragments.set_deleted(db, n, now, now=now)


def confirm(
    db: Connection,
    n: int,
    *,
    sources: Sequence[str],
    confidence_gain: float,
    now: datetime,
    recorder: StepRecorder = ignore_step,
) -> None:
    """Add source messages to a fragment, raise its confidence, and refresh its relevance."""
    row = db.find(
        "SELECT importance, access_count, version, confidence, source_messages, updated_at"
        " FROM fragments WHERE n = :n",
        n=n,
    )
    if row is None:
        return
    importance, access_count, version, confidence, former_sources, updated_at = row
    recorder(db, _reinforcement_step(db, n, now=now))
    note = pack_json([confidence, former_sources])
    recorder(db, Step("confirmed", n, value=version, note=note, at=updated_at))
    db.run(
        "UPDATE fragments SET source_messages = :sources,"
        " confidence = CASE WHEN confidence + :by > 1.0 THEN 1.0 ELSE confidence + :by END,"
        " relevance = CASE WHEN relevance > :fresh THEN relevance ELSE :fresh END,"
        " updated_at = :at, last_reinforced = CASE WHEN last_reinforced > :at THEN"
        " last_reinforced ELSE :at END WHERE n = :n",
        sources=pack_json(sources),
        by=confidence_gain,
        fresh=relevance(importance, access_count, 0.0),
        at=clock.to_us(now),
        n=n,
    )
    history.log_change(db, "change", [n], now)


def count_confirmation(
    db: Connection, n: int, project_n: int, *, now: datetime, recorder: StepRecorder = ignore_step
) -> None:
    """Count a confirmation of a fragment in a project."""
    sql = "SELECT times, at FROM confirmations WHERE fragment_n = :n AND project_n = :project_n"
    times, at = db.find(sql, n=n, project_n=project_n) or (0, None)
    recorder(db, Step("counted", n, kind=str(project_n), value=times, at=at))
    row = {"fragment_n": n, "project_n": project_n, "times": times + 1, "at": clock.to_us(now)}
    db.upsert("confirmations", ("fragment_n", "project_n"), **row)


def confirmations_by_project(db: Connection, n: int) -> dict[str, int]:
    """Return how often a fragment was confirmed, by project id."""
    sql = (
        "SELECT p.id, c.times FROM confirmations c JOIN projects p ON p.n = c.project_n"
        " WHERE c.fragment_n = :n ORDER BY c.at, p.n"
    )
    return dict(db.rows(sql, n=n))


def widely_confirmed(
    db: Connection, *, projects: int, confidence: float, trust: int
) -> dict[int, dict[str, int]]:
    """Return the fragments of a project that were confirmed in many projects, most first.

    Each comes with the number of its confirmations by project id.
    """
    ns = db.column(
        # The few that were confirmed come first, not all fragments.
        "WITH c AS MATERIALIZED (SELECT fragment_n, count(*) AS times FROM confirmations"
        " GROUP BY fragment_n HAVING count(*) >= :projects)"
        " SELECT f.n FROM c JOIN fragments f ON f.n = c.fragment_n"
        f" JOIN items i ON i.n = f.n WHERE i.project_n IS NOT NULL AND {LIVING_FRAGMENT}"
        " AND f.confidence >= :confidence AND f.trust >= :trust ORDER BY c.times DESC, f.n",
        projects=projects,
        # Confirmations add up binary fractions: 0.7 plus two times 0.05 is slightly below 0.8.
        confidence=confidence - 1e-9,
        trust=trust,
    )
    return {n: confirmations_by_project(db, n) for n in ns}


def reinforce(
    db: Connection, n: int, *, now: datetime, recorder: StepRecorder = ignore_step
) -> None:
    """Reinforce a fragment, and its neighbours a little."""
    recorder(db, _reinforcement_step(db, n, now=now))
    fragments.reinforce(db, n, now=now)


def _reinforcement_step(db: Connection, n: int, *, now: datetime) -> Step:
    """Return the step of a reinforcement: the strengths of a fragment and its neighbours."""
    sql = (
        f"SELECT n, {', '.join(_STRENGTH_COLUMNS)} FROM fragments WHERE n = :n OR n IN"
        " (SELECT target_n FROM edges WHERE source_n = :n UNION"
        " SELECT source_n FROM edges WHERE target_n = :n) ORDER BY n"
    )
    return Step("strengthened", n, note=pack_json(db.rows(sql, n=n)), at=clock.to_us(now))


_STRENGTH_COLUMNS = (
    "access_count", "last_accessed", "last_reinforced", "relevance", "boost", "boosted_at",
)  # fmt: skip


def _undo_reinforcement(db: Connection, step: Step, _now: datetime) -> bool:
    """Restore former strengths, except of fragments that were read since."""
    changed = 0
    for n, *former in orjson.loads(step.note):
        changed += db.run(
            f"UPDATE fragments SET {', '.join(f'{name} = :{name}' for name in _STRENGTH_COLUMNS)}"
            " WHERE n = :n AND coalesce(last_accessed, 0) <= :at AND last_reinforced <= :at"
            " AND boosted_at <= :at",
            n=n,
            at=step.at,
            **dict(zip(_STRENGTH_COLUMNS, former, strict=True)),
        )
    return bool(changed)


MIN_EDGE_WEIGHT = 0.15

_DAILY_EDGE_DECAY = 0.00438
"""ln(0.5 / 0.15) / (365 - 90): an edge of weight 0.5 is removed a year after its last use."""

_GRACE_US = USED_DAYS * 86_400_000_000
"""Microseconds after its last use in which an edge does not decay."""

DECAY_PROGRESS = "weights"


_DECAY_START = (
    f"(SELECT max(t) FROM (SELECT :since AS t UNION ALL SELECT edges.created_at + {_GRACE_US}"
    f" UNION ALL SELECT f.last_accessed + {_GRACE_US} FROM fragments f"
    " WHERE f.n IN (edges.source_n, edges.target_n)))"
)
"""The time since `since` from which an edge decays: long after either of its ends was used."""

_IS_DECAYING = f"kind = 'associative' AND {_DECAY_START} < :until"
_DECAY_FACTOR = f"exp(-{_DAILY_EDGE_DECAY} * (:until - {_DECAY_START}) / 8.64e10)"
"""The factor by which a decaying edge decays from `since` to `until`."""

_DECAY_FACTORS = f"SELECT source_n, target_n, {_DECAY_FACTOR} FROM edges WHERE {_IS_DECAYING}"


def decay_edges(db: Connection, cycle_n: int, *, now: datetime) -> tuple[int, int]:
    """Decay associative edges since the last time and delete weak ones; count both."""
    last, until = consolidation.get_progress(db, DECAY_PROGRESS), clock.to_us(now)
    if until <= last:
        return 0, 0
    during = {"since": last, "until": until}
    # An end may be used before the decay is undone: the factors cannot be computed again then.
    note = pack_json(db.rows(_DECAY_FACTORS, **during))
    faded = db.run(
        f"UPDATE edges SET weight = weight * {_DECAY_FACTOR} WHERE {_IS_DECAYING}", **during
    )
    consolidation.record_steps(db, cycle_n, Step("decayed", value=float(until), note=note, at=last))
    weak = f"FROM edges WHERE kind = 'associative' AND weight < {MIN_EDGE_WEIGHT}"
    db.run(
        "INSERT INTO steps (cycle_n, verb, fragment_n, other_n, kind, value, note, at)"
        " SELECT :cycle_n, 'edge_dropped', source_n, target_n, kind, weight, note, created_at"
        f" {weak}",
        cycle_n=cycle_n,
    )
    dropped = db.run(f"DELETE {weak}")
    consolidation.set_progress(db, DECAY_PROGRESS, until)
    return faded, dropped


def _undo_decay(db: Connection, step: Step, _now: datetime) -> bool:
    """Restore the weight that associative edges lost in one decay.

    Steps of an earlier Lore have no factors; they are computed of the present times of use.
    """
    last, until = step.at or 0, int(step.value or 0)
    noted = orjson.loads(step.note) if step.note else None
    factors = db.rows(_DECAY_FACTORS, since=last, until=until) if noted is None else noted
    db.run_many(
        "UPDATE edges SET weight = CASE WHEN weight > :factor THEN 1.0 ELSE weight / :factor END"
        " WHERE source_n = :source_n AND target_n = :target_n AND kind = 'associative'",
        [(factor, source_n, target_n) for source_n, target_n, factor in factors],
    )
    if consolidation.get_progress(db, DECAY_PROGRESS) == until:
        consolidation.set_progress(db, DECAY_PROGRESS, last)
    return True


def archive(db: Connection, n: int, *, now: datetime, recorder: StepRecorder = ignore_step) -> None:
    """Show a fragment on request only."""
    recorder(db, Step("archived", n))
    db.update("fragments", n, archived_at=clock.to_us(now))
    history.log_change(db, "change", [n], now)


def _undo_archive(db: Connection, step: Step, now: datetime) -> bool:
    history.log_change(db, "change", [step.fragment_n or 0], now)
    return bool(db.update("fragments", step.fragment_n or 0, archived_at=None))


def set_payload(
    db: Connection,
    n: int,
    payload: Mapping[str, Any],
    *,
    confidence: float,
    now: datetime,
    recorder: StepRecorder = ignore_step,
) -> None:
    """Replace the payload and the confidence of a fragment."""
    packed, former, version = db.rows(
        "SELECT payload, confidence, version FROM fragments WHERE n = :n", n=n
    )[0]
    recorder(db, Step("evidence", n, value=version, note=pack_json([packed, former])))
    db.update("fragments", n, payload=pack_json(payload), confidence=confidence)
    history.log_change(db, "change", [n], now)


def _undo_evidence(db: Connection, step: Step, now: datetime) -> bool:
    """Restore payload, confidence and text from before more evidence came."""
    n, version = step.fragment_n or 0, int(step.value or 0)
    packed, confidence = orjson.loads(step.note)
    present = db.value("SELECT version FROM fragments WHERE n = :n", n=n)
    if present not in (version, version + 1):
        return False
    if present == version + 1:
        ((content, summary),) = db.rows(
            "SELECT content, summary FROM fragment_versions"
            " WHERE fragment_n = :n AND version = :version",
            n=n,
            version=version,
        )
        reset_to_version(db, n, content, summary, version, now=now)
    db.update("fragments", n, payload=packed, confidence=confidence)
    return True


def record_settled(
    db: Connection, link: Replacement, recorder: StepRecorder, *, inserts: bool
) -> bool:
    """Set the relation of a link that a chat judged, and record the step that undoes it.

    A link that is not there is stored only if `inserts`; what a person decided stays.
    """
    former = replacements.find_pair(db, link)
    if former is None:
        if not inserts or not replacements.record(db, (), [link]):
            return False
        stored = replacements.find_pair(db, link)
        recorder(db, Step("settled", at=stored.n if stored else None))
        return True
    if former.certainty >= 1.0:
        return False
    settled = former._replace(relation=link.relation, certainty=link.certainty)
    replacements.set_pair_states(db, [settled])
    recorder(db, Step("settled", kind=former.relation, value=former.certainty, at=former.n))
    return True


def _undo_settled(db: Connection, step: Step, _now: datetime) -> bool:
    """Restore the relation of a link, or drop one that was stored; a person's decision stays."""
    n = step.at or 0
    present = replacements.pair_states(db, [n]).get(n)
    if present is None or present.certainty >= 1.0:
        return False
    if not step.kind:
        return replacements.drop_link(db, n)
    former = present._replace(relation=cast("Relation", step.kind), certainty=step.value or 0.0)
    replacements.set_pair_states(db, [former])
    return True


def undo_step(db: Connection, step: Step, *, now: datetime) -> bool:
    """Undo one step; return False if its subject was changed since and stays as it is."""
    return _UNDO_BY_VERB[step.verb](db, step, now)


_UNDO_BY_VERB: dict[StepVerb, Callable[[Connection, Step, datetime], bool]] = {
    "edge_added": _undo_add_edge,
    "edge_dropped": _undo_drop_edge,
    "depth": _undo_depth,
    "superseded": _undo_supersede,
    "hidden": _undo_hide,
    "reworded": _undo_overview,
    "added": _undo_creation,
    "decayed": _undo_decay,
    "confirmed": _undo_confirmation,
    "counted": _undo_count,
    "strengthened": _undo_reinforcement,
    "archived": _undo_archive,
    "evidence": _undo_evidence,
    "settled": _undo_settled,
}

"""Consolidation: its cycles and their undo steps, its judgements, and the queries of its phases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.errors import AmbiguousId, InvalidInput
from lore.index.quantization import SCALE_BYTES, unpack_rows
from lore.records import TRUST, CycleReport, FragmentKind, PhaseReport
from lore.store import database, items, vectors
from lore.store.codec import pack_json, unpack_json, unpack_optional_time, unpack_time
from lore.store.fragments import CURRENT_FRAGMENT
from lore.store.native_rows import IN_ITS_FILE
from lore.store.sql_connection import Connection, Row, among, int_array
from lore.text import words

UNDO_PERIOD = timedelta(hours=24)
"""A cycle can be undone for this long after its end; then what it pruned is deleted for good."""

_REPORT_RETENTION = timedelta(days=30)
"""Cycle reports are kept for a month."""

_CYCLE_COLUMNS = "n, id, started_at, ended_at, undone_at, report"


class CycleRow(NamedTuple):
    """A cycle's number and its report so far."""

    n: int
    report: CycleReport


def begin_cycle(db: Connection, phases: Sequence[str], *, now: datetime) -> int:
    """Start a cycle with all phases pending and return its number."""
    report = _pack_phases([PhaseReport(phase, "pending") for phase in phases])
    return db.insert_numbered(
        "cycles", id=clock.new_id(now), started_at=clock.to_us(now), report=report
    )


def save_phase(db: Connection, n: int, phase: PhaseReport) -> None:
    """Store what a phase has done so far, replacing its former report."""
    report = get_report(db, n)
    phases = [phase if one.phase == phase.phase else one for one in report.phases]
    db.update("cycles", n, report=_pack_phases(phases))


def end_cycle(db: Connection, n: int, *, now: datetime) -> None:
    """End a cycle and delete old reports."""
    db.update("cycles", n, ended_at=clock.to_us(now))
    db.run(
        "DELETE FROM cycles WHERE started_at < :line AND n NOT IN (SELECT cycle_n FROM steps)",
        line=clock.to_us(now - _REPORT_RETENTION),
    )


def mark_cycle_undone(db: Connection, n: int, *, now: datetime) -> None:
    """Record that a cycle was undone."""
    db.run(
        "UPDATE cycles SET undone_at = :at, ended_at = coalesce(ended_at, :at) WHERE n = :n",
        at=clock.to_us(now),
        n=n,
    )


def get_report(db: Connection, n: int) -> CycleReport:
    """Return the report of a cycle."""
    return _cycle(db.rows(f"SELECT {_CYCLE_COLUMNS} FROM cycles WHERE n = :n", n=n)[0]).report


def find_cycle(db: Connection, id_: str) -> CycleRow | None:
    """Return the cycle with this id or id prefix."""
    prefix = id_.strip().lower()
    if len(prefix) < items.SHORTEST_PREFIX:
        msg = f"'{id_}' is too short for an id: give at least {items.SHORTEST_PREFIX} characters."
        raise InvalidInput(msg)
    rows = db.rows(
        f"SELECT {_CYCLE_COLUMNS} FROM cycles WHERE id >= :id AND id < :id || '~'"
        " ORDER BY n LIMIT 2",
        id=prefix,
    )
    if len(rows) > 1:
        msg = f"'{id_}' matches several cycles."
        raise AmbiguousId(msg)
    return _cycle(rows[0]) if rows else None


def find_open_cycle(db: Connection, phases: Sequence[str]) -> CycleRow | None:
    """Return the last cycle of these phases that was started and never ended, to be resumed."""
    rows = db.rows(f"SELECT {_CYCLE_COLUMNS} FROM cycles WHERE ended_at IS NULL ORDER BY n DESC")
    cycles = (_cycle(row) for row in rows)
    matches = (c for c in cycles if [one.phase for one in c.report.phases] == list(phases))
    return next(matches, None)


def find_last_cycle(db: Connection, *, not_undone: bool = False) -> CycleRow | None:
    """Return the newest cycle; with `standing`, the newest that was not undone."""
    condition = "WHERE undone_at IS NULL" if not_undone else ""
    row = db.find(f"SELECT {_CYCLE_COLUMNS} FROM cycles {condition} ORDER BY n DESC LIMIT 1")
    return None if row is None else _cycle(row)


def recent_reports(db: Connection, *, limit: int) -> list[CycleReport]:
    """Return the reports of the latest cycles, newest first."""
    rows = db.rows(f"SELECT {_CYCLE_COLUMNS} FROM cycles ORDER BY n DESC LIMIT :limit", limit=limit)
    return [_cycle(row).report for row in rows]


def page_of_reports(
    db: Connection, *, before: int, limit: int
) -> list[tuple[tuple[int], CycleReport]]:
    """Return the reports of cycles before a number, newest first, each with its key."""
    rows = db.rows(
        f"SELECT n, {_CYCLE_COLUMNS} FROM cycles WHERE n < :before ORDER BY n DESC LIMIT :limit",
        before=before,
        limit=limit,
    )
    return [((row[0],), _cycle(row[1:]).report) for row in rows]


def cycles_past_undo(db: Connection, *, running: int = 0, now: datetime) -> list[int]:
    """Return the cycles that still have undo steps but can no longer be undone.

    The running cycle is never one of them, even if it started long ago.
    """
    sql = (
        "SELECT n FROM cycles WHERE coalesce(ended_at, started_at) <= :line"
        " AND n IN (SELECT cycle_n FROM steps) AND n <> :running ORDER BY n"
    )
    return db.column(sql, line=clock.to_us(now - UNDO_PERIOD), running=running)


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def redact_reports(db: Connection, ids: Sequence[str], needle: str = "") -> None:
    """Remove lines from all reports that name one of these ids or contain a text.

    The reasons of failed phases are removed as well: an error may quote anything.
    """
    deleted = set(ids)
    for n, packed in db.rows("SELECT n, report FROM cycles"):
        phases = _unpack_phases(packed)
        redacted = [
            replace(
                one,
                told=_redacted_lines(one.told, deleted, needle),
                reason="" if one.state == "failed" else one.reason,
            )
            for one in phases
        ]
        if redacted != phases:
            db.update("cycles", n, report=_pack_phases(redacted))


def _redacted_lines(lines: tuple[str, ...], deleted: set[str], needle: str) -> tuple[str, ...]:
    return tuple(
        line
        for line in lines
        if deleted.isdisjoint(_ID.findall(line))
        and not (needle and needle in " ".join(line.casefold().split()))
    )


def get_progress(db: Connection, name: str, *, before: str = "") -> int:
    """Return the progress value that a phase stored; 0 at first.

    A name that has none continues what the phase did under the name `before`.
    """
    value = database.find_meta(db, _progress_key(name))
    if value is None and before:
        value = database.find_meta(db, _progress_key(before))
    return int(value or 0)


def set_progress(db: Connection, name: str, value: int) -> None:
    """Store the progress value of a phase."""
    database.set_meta(db, _progress_key(name), str(value))


def _progress_key(name: str) -> str:
    return f"consolidated {name}"


def _pack_phases(phases: Sequence[PhaseReport]) -> str:
    return pack_json([asdict(phase) for phase in phases])


def _unpack_phases(packed: str) -> list[PhaseReport]:
    return [PhaseReport(**{**one, "told": tuple(one["told"])}) for one in unpack_json(packed)]


def _cycle(row: Row) -> CycleRow:
    n, id_, started_at, ended_at, undone_at, packed = row
    times = unpack_time(started_at), unpack_optional_time(ended_at)
    phases = tuple(_unpack_phases(packed))
    return CycleRow(n, CycleReport(id_, *times, phases, undone=undone_at is not None))


StepVerb = Literal[
    "edge_added", "edge_dropped", "depth", "superseded", "hidden", "reworded", "added", "decayed",
    "confirmed", "counted", "strengthened", "archived", "evidence", "settled",
]  # fmt: skip


class Step(NamedTuple):
    """One undoable change: `value` is the former weight, depth or version, `at` the former time."""

    verb: StepVerb
    fragment_n: int | None = None
    other_n: int | None = None
    kind: str = ""
    value: float | None = None
    note: str = ""
    at: int | None = None


_STEP_COLUMNS = ", ".join(Step._fields)

StepRecorder = Callable[[Connection, Step], None]
"""Called inside the transaction of each change with the step that undoes it."""


def ignore_step(_db: Connection, _step: Step) -> None:
    """Record nothing: users undo their own actions through the undo log."""


def step_recorder(cycle_n: int) -> StepRecorder:
    """Return a recorder that stores every change as a step of a cycle."""
    return lambda db, step: record_steps(db, cycle_n, step)


def record_steps(db: Connection, cycle_n: int, *steps: Step) -> None:
    """Store undo steps of a cycle."""
    db.insert_many("steps", ("cycle_n", *Step._fields), [(cycle_n, *step) for step in steps])


def steps_of_cycle(db: Connection, cycle_n: int, verb: StepVerb | None = None) -> list[Step]:
    """Return the steps of a cycle, last first."""
    sql = (
        f"SELECT {_STEP_COLUMNS} FROM steps WHERE cycle_n = :cycle_n"
        " AND (:verb IS NULL OR verb = :verb) ORDER BY n DESC"
    )
    return [Step(*row) for row in db.rows(sql, cycle_n=cycle_n, verb=verb)]


def steps_of_fragment(db: Connection, n: int) -> list[tuple[datetime, StepVerb]]:
    """Return when and how cycles changed a fragment, as far as that can still be undone."""
    sql = (
        "SELECT c.started_at, s.verb FROM steps s JOIN cycles c ON c.n = s.cycle_n"
        " WHERE s.fragment_n = :n ORDER BY s.n"
    )
    return [(unpack_time(at), verb) for at, verb in db.rows(sql, n=n)]


def drop_steps(db: Connection, cycle_ns: Sequence[int]) -> None:
    """Delete the steps of cycles that were undone or can no longer be undone."""
    db.run(f"DELETE FROM steps WHERE {among('cycle_n', 'ns')}", ns=int_array(cycle_ns))


JudgementVerb = Literal["merge", "judge", "ask", "reflect", "prune"]
"""What was decided; for 'ask', the verdict counts the failed requests to the model."""


class Judgement(NamedTuple):
    """One decision about a pair of fragments, and the versions that it was based on."""

    a_n: int
    b_n: int
    verb: JudgementVerb
    verdict: str
    a_version: int = 0
    b_version: int = 0


def put_judgements(db: Connection, judged: Iterable[Judgement], *, now: datetime) -> None:
    """Store decisions, replacing former ones about the same pairs."""
    at = clock.to_us(now)
    for one in judged:
        db.upsert("judgements", ("a_n", "b_n", "verb"), **one._asdict(), at=at)


def remove_judgements(db: Connection, pairs: Iterable[tuple[int, int, JudgementVerb]]) -> None:
    """Remove decisions about pairs, so that a cycle decides again."""
    sql = "DELETE FROM judgements WHERE a_n = :a_n AND b_n = :b_n AND verb = :verb"
    db.run_many(sql, list(pairs))


def judgements_of(
    db: Connection, ns: Sequence[int], verb: JudgementVerb
) -> dict[tuple[int, int], Judgement]:
    """Return the decisions about pairs whose first fragment is one of `ns`, by pair."""
    sql = (
        f"SELECT {', '.join(Judgement._fields)} FROM judgements"
        f" WHERE {among('a_n', 'ns')} AND verb = :verb"
    )
    rows = db.rows(sql, ns=int_array(ns), verb=verb)
    return {(row[0], row[1]): Judgement(*row) for row in rows}


def count_judgements(db: Connection, verb: JudgementVerb) -> int:
    """Return how many decisions of a kind there are."""
    return int(db.value("SELECT count(*) FROM judgements WHERE verb = :verb", verb=verb))


def count_roots(db: Connection) -> int:
    """Return the number of roots, deleted or not."""
    return int(db.value("SELECT count(*) FROM fragments WHERE depth = 0"))


def judgement_groups(db: Connection, verb: JudgementVerb) -> dict[int, set[int]]:
    """Return for each first fragment of a decision all its partners."""
    groups: dict[int, set[int]] = {}
    for a_n, b_n in db.rows("SELECT a_n, b_n FROM judgements WHERE verb = :verb", verb=verb):
        groups.setdefault(a_n, set()).add(b_n)
    return groups


Matrix = NDArray[np.float32]
Numbers = NDArray[np.int64]


class ActiveEmbedder(NamedTuple):
    """The embedder whose vectors are compared."""

    n: int
    dimension: int


class Root(NamedTuple):
    """The columns of a root fragment that merging and linking need."""

    n: int
    seq: int
    scope: int
    trust: int
    kind: FragmentKind
    access_count: int
    created_at: int


class UndigestedSession(NamedTuple):
    """An idle session that is waiting to be digested."""

    n: int
    id: str
    last_message_at: int


def find_active_embedder(db: Connection) -> ActiveEmbedder | None:
    """Return the embedder whose vectors are searched, or None."""
    row = db.find(
        "SELECT e.n, e.dimension FROM embedders e JOIN meta m ON m.value = e.identity"
        " WHERE m.key = 'embedder'"
    )
    return None if row is None else ActiveEmbedder(*row)


def embedded_roots(db: Connection, embedding: ActiveEmbedder) -> tuple[list[Root], Matrix]:
    """Return the live roots that have a vector, except episodes, with their vectors."""
    sql = (
        f"SELECT f.n, v.seq, coalesce({items.scope_sql('i')}, -1), f.trust, f.kind, f.access_count,"
        " i.created_at, v.vector FROM fragments f JOIN items i ON i.n = f.n"
        " JOIN vectors v ON v.n = f.n"
        f" WHERE f.depth = 0 AND {CURRENT_FRAGMENT} AND f.kind <> 'episode'"
        " AND v.embedder_n = :embedder_n AND length(v.vector) = :size ORDER BY f.n"
    )
    rows = db.rows(sql, embedder_n=embedding.n, size=embedding.dimension + SCALE_BYTES)
    packed = b"".join(row[-1] for row in rows)
    return [Root(*row[:-1]) for row in rows], unpack_rows(packed, embedding.dimension)


def newest_child_changes(db: Connection) -> dict[int, int]:
    """Return for each fragment with live children the highest change number among them."""
    rows = db.rows(
        "SELECT e.source_n, max(v.seq) FROM edges e JOIN fragments f ON f.n = e.target_n"
        " JOIN items i ON i.n = f.n JOIN vectors v ON v.n = i.n AND v.embedder_n = i.embedder_n"
        f" WHERE e.kind = 'hierarchical' AND {CURRENT_FRAGMENT} GROUP BY e.source_n"
    )
    return dict(rows)


def children_of(db: Connection, ns: Sequence[int]) -> dict[int, list[int]]:
    """Return the live children of each fragment, in the order they were learned."""
    rows = db.rows(
        "SELECT e.source_n, e.target_n FROM edges e JOIN fragments f ON f.n = e.target_n"
        f" WHERE e.kind = 'hierarchical' AND {CURRENT_FRAGMENT} AND {among('e.source_n', 'ns')}"
        " ORDER BY e.target_n",
        ns=int_array(ns),
    )
    children: dict[int, list[int]] = {}
    for parent, child in rows:
        children.setdefault(parent, []).append(child)
    return children


_CHILDREN_SINCE = (
    "FROM vectors v JOIN items i ON i.n = v.n AND i.embedder_n = v.embedder_n"
    " JOIN fragments f ON f.n = v.n"
    " JOIN edges e ON e.target_n = v.n AND e.kind = 'hierarchical'"
    f" WHERE v.seq > :seq AND {CURRENT_FRAGMENT} AND f.kind <> 'episode'"
)


def children_since(db: Connection, seq: int, *, limit: int) -> list[tuple[int, int, int]]:
    """Return (change number, child, parent) of live children embedded after a change number.

    Oldest first.
    """
    rows = db.rows(
        f"SELECT v.seq, v.n, e.source_n {_CHILDREN_SINCE} ORDER BY v.seq LIMIT :limit",
        seq=seq,
        limit=limit,
    )
    return [(row[0], row[1], row[2]) for row in rows]


def count_children_since(db: Connection, seq: int) -> int:
    """Count the live children that were embedded after a change number."""
    return int(db.value(f"SELECT count(*) {_CHILDREN_SINCE}", seq=seq))


def load_vectors(db: Connection, ns: Sequence[int], embedding: ActiveEmbedder) -> Matrix:
    """Return the vectors of fragments in their order; a row of zeros for a missing vector."""
    return vectors.load(db, embedding.n, np.array(ns, np.int64), embedding.dimension)


def associated_pairs(db: Connection, ns: Sequence[int]) -> set[tuple[int, int]]:
    """Return the pairs of fragments linked by associative edges, lower number first."""
    sql = (
        f"SELECT source_n, target_n FROM edges WHERE {among('source_n', 'ns')}"
        " AND kind = 'associative' UNION SELECT source_n, target_n FROM edges"
        f" WHERE {among('target_n', 'ns')} AND kind = 'associative'"
    )
    return {(a, b) if a < b else (b, a) for a, b in db.rows(sql, ns=int_array(ns))}


def root_links(db: Connection, *, least: float) -> list[tuple[int, int, float]]:
    """Return which live roots of one project are linked, directly or through their children.

    Each is (lower, higher, weight of the strongest edge), strongest first.
    """
    tops = (
        "SELECT f.n AS n, f.n AS root FROM fragments f WHERE f.depth = 0 UNION ALL"
        " SELECT e.target_n, e.source_n FROM edges e JOIN fragments r ON r.n = e.source_n"
        " WHERE e.kind = 'hierarchical' AND r.depth = 0"
    )
    rows = db.rows(
        f"WITH tops AS ({tops}) SELECT CASE WHEN a.root < b.root THEN a.root ELSE b.root END AS x,"
        " CASE WHEN a.root < b.root THEN b.root ELSE a.root END AS y, max(l.weight) AS strongest"
        " FROM edges l JOIN tops a ON a.n = l.source_n JOIN tops b ON b.n = l.target_n"
        " JOIN items p ON p.n = a.root JOIN items q ON q.n = b.root"
        " WHERE l.kind = 'associative' AND l.weight >= :least AND a.root <> b.root"
        f" AND {items.scope_sql('p')} IS NOT DISTINCT FROM {items.scope_sql('q')}"
        " GROUP BY x, y ORDER BY strongest DESC, x, y",
        least=least,
    )
    sql = (
        f"SELECT f.n FROM fragments f WHERE f.depth = 0 AND {CURRENT_FRAGMENT}"
        " AND f.kind NOT IN ('insight', 'episode')"
    )
    living = set(db.column(sql))
    return [(a, b, weight) for a, b, weight in rows if a in living and b in living]


def stale_overviews(db: Connection, *, least_children: int) -> list[int]:
    """Return the derived roots whose children changed since their last overview.

    Roots that a user said, stored or changed keep their text.
    """
    sql = (
        "SELECT r.n FROM fragments r JOIN edges e ON e.source_n = r.n AND e.kind = 'hierarchical'"
        " JOIN fragments f ON f.n = e.target_n WHERE r.depth = 0 AND r.deleted_at IS NULL"
        " AND r.superseded_by IS NULL AND r.trust < :person AND r.source_messages <> '[]'"
        " AND r.kind NOT IN ('preference', 'episode', 'insight') AND r.n NOT IN"
        " (SELECT a.fragment_n FROM actions a WHERE a.verb IN ('store', 'update'))"
        " GROUP BY r.n, r.overview_at"
        f" HAVING sum(CASE WHEN {CURRENT_FRAGMENT} THEN 1 ELSE 0 END) >= :least"
        " AND (r.overview_at IS NULL OR max(f.updated_at) > r.overview_at"
        " OR max(e.created_at) > r.overview_at OR max(coalesce(f.deleted_at, 0)) > r.overview_at"
        " OR max(coalesce(f.valid_to, 0)) > r.overview_at) ORDER BY r.n"
    )
    return db.column(sql, person=TRUST["user"], least=least_children)


def set_overview_at(db: Connection, n: int, now: datetime | None) -> None:
    """Set the time of a root's overview; None requests a new one."""
    db.update("fragments", n, overview_at=None if now is None else clock.to_us(now))


def request_overviews(db: Connection, child_ns: Sequence[int]) -> None:
    """Request a new overview for the parents of fragments in the next cycle."""
    db.run(
        "UPDATE fragments SET overview_at = NULL WHERE overview_at IS NOT NULL AND n IN"
        " (SELECT source_n FROM edges WHERE kind = 'hierarchical'"
        f" AND {among('target_n', 'ns')})",
        ns=int_array(child_ns),
    )


_REPLACES_NOTHING = (
    "f.n NOT IN (SELECT source_n FROM edges WHERE kind = 'supersedes') AND f.n NOT IN"
    " (SELECT newer_n FROM replacements WHERE relation NOT IN ('dismissed', 'possible'))"
)
"""What supersedes or replaces something stays: without it neither of both would be shown."""


class PruneLimit(NamedTuple):
    """A relevance, and the age and days without use, beyond which fragments are pruned."""

    relevance: float
    age: timedelta


def prunable_fragments(
    db: Connection, *, unread: PruneLimit, any_: PruneLimit, root: PruneLimit, now: datetime
) -> list[int]:
    """Return the fragments that faded below a limit, deepest first.

    `unread` is for children never read, `any_` for all children, `root` for roots that were never
    used and have no children; the episodes of sessions stay. A fragment that supersedes or replaces
    another one stays too, because its removal would restore the older one; and so does a note that
    is still in an agent's file, because that file would not be read again.
    """
    return db.column(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.deleted_at IS NULL"
        # Implied by the rest; without it, the item of every fragment is read.
        " AND f.relevance < :highest"
        " AND ((f.depth > 0 AND f.relevance < :unread AND f.access_count = 0"
        " AND i.created_at < :unread_before AND coalesce(f.last_accessed, 0) < :unread_before)"
        " OR (f.depth > 0 AND f.relevance < :any AND i.created_at < :any_before"
        " AND coalesce(f.last_accessed, 0) < :any_before)"
        " OR (f.depth = 0 AND f.relevance < :root AND i.created_at < :root_before"
        " AND f.last_accessed IS NULL AND f.superseded_by IS NULL AND f.kind <> 'episode'"
        " AND f.n NOT IN (SELECT source_n FROM edges WHERE kind = 'hierarchical')))"
        f" AND {_REPLACES_NOTHING}"
        " AND f.n NOT IN (SELECT a_n FROM judgements WHERE verb = 'prune')"
        f" AND NOT ({IN_ITS_FILE}) ORDER BY f.depth DESC, f.n",
        highest=max(unread.relevance, any_.relevance, root.relevance),
        unread=unread.relevance,
        unread_before=clock.to_us(now - unread.age),
        any=any_.relevance,
        any_before=clock.to_us(now - any_.age),
        root=root.relevance,
        root_before=clock.to_us(now - root.age),
    )


def undigested_sessions(
    db: Connection, *, idle: timedelta, now: datetime
) -> list[UndigestedSession]:
    """Return the idle sessions that have new messages since they were digested."""
    sql = (
        "SELECT s.n, s.id, s.last_message_at FROM sessions s"
        " LEFT JOIN session_states d ON d.session_n = s.n AND d.name = 'digested'"
        " WHERE s.last_message_at <= :line AND EXISTS"
        " (SELECT 1 FROM messages m WHERE m.session_n = s.n)"
        " AND (d.value IS NULL OR d.value <> CAST(s.last_message_at AS TEXT))"
        " ORDER BY s.last_message_at, s.n"
    )
    return [UndigestedSession(*row) for row in db.rows(sql, line=clock.to_us(now - idle))]


_FACTS_OF_SESSION = (
    "FROM fragments f JOIN items i ON i.n = f.n"
    f" WHERE {CURRENT_FRAGMENT} AND f.trust < :person AND f.source_messages <> '[]'"
    " AND f.kind NOT IN ('episode', 'insight')"
    f" AND {_REPLACES_NOTHING}"
    " AND f.n NOT IN (SELECT a_n FROM judgements WHERE verb = 'prune')"
    " AND f.n NOT IN (SELECT fragment_n FROM actions WHERE fragment_n IS NOT NULL)"
)


def unchecked_sessions(
    db: Connection, *, idle: timedelta, recent: timedelta, now: datetime
) -> list[UndigestedSession]:
    """Return the idle sessions that were digested lately, and not checked since their last message.

    Those whose check failed least often come first, the oldest of them first; sessions of which no
    fact was extracted are left out.
    """
    sql = (
        "SELECT s.n, s.id, s.last_message_at FROM sessions s"
        " JOIN session_states d ON d.session_n = s.n AND d.name = 'digested'"
        " LEFT JOIN session_states c ON c.session_n = s.n AND c.name = 'checked'"
        " LEFT JOIN session_states e ON e.session_n = s.n AND e.name = 'check_failures'"
        " WHERE s.last_message_at <= :idle_since AND d.updated_at >= :recent_since"
        " AND d.value = CAST(s.last_message_at AS TEXT)"
        " AND (c.value IS NULL OR c.value <> CAST(s.last_message_at AS TEXT))"
        f" AND EXISTS (SELECT 1 {_FACTS_OF_SESSION} AND i.session_n = s.n)"
        " ORDER BY CAST(coalesce(e.value, '0') AS INTEGER), s.last_message_at, s.n"
    )
    since = {"idle_since": clock.to_us(now - idle), "recent_since": clock.to_us(now - recent)}
    return [UndigestedSession(*row) for row in db.rows(sql, **since, person=TRUST["user"])]


def facts_of_session(db: Connection, session_n: int) -> list[int]:
    """Return the facts that were extracted from a session and that no person said or changed.

    A fact that supersedes or replaces another is left out: without it neither would be shown.
    """
    sql = f"SELECT f.n {_FACTS_OF_SESSION} AND i.session_n = :session_n ORDER BY f.n"
    return db.column(sql, session_n=session_n, person=TRUST["user"])


def texts_before_overviews(db: Connection, ns: Sequence[int]) -> dict[int, str]:
    """Return the texts that fragments had before their current overviews.

    Fragments whose text was changed since by anything else are left out.
    """
    sql = (
        "SELECT v.fragment_n, v.content FROM fragment_versions v JOIN (SELECT o.fragment_n AS n,"
        " min(o.version) AS version FROM fragment_versions o WHERE o.reason = 'overview'"
        f" AND {among('o.fragment_n', 'ns')} AND o.version > (SELECT coalesce(max(w.version), 0)"
        " FROM fragment_versions w WHERE w.fragment_n = o.fragment_n AND w.reason <> 'overview')"
        " GROUP BY o.fragment_n) AS first ON v.fragment_n = first.n AND v.version = first.version"
    )
    return dict(db.rows(sql, ns=int_array(ns)))


_MAX_NAMING = 1_000
"""At most this many fragments are checked for one missing file."""


class ProjectFolder(NamedTuple):
    """A project's folder, and the files in it that sessions read or wrote."""

    project_n: int
    path: str
    files: frozenset[str]


class FileMention(NamedTuple):
    """A fragment that may name files, with its text."""

    n: int
    project_n: int
    text: str


def project_folders(db: Connection) -> list[ProjectFolder]:
    """Return the folders of projects in whose sessions files were read or written."""
    folders: dict[int, tuple[str, set[str]]] = {}
    for n, path, files in db.rows(
        "SELECT p.n, p.path, s.files FROM sessions s JOIN projects p ON p.n = s.project_n"
        " WHERE s.files <> '' ORDER BY p.n"
    ):
        folders.setdefault(n, (path, set()))[1].update(files.split("\n"))
    return [ProjectFolder(n, path, frozenset(files)) for n, (path, files) in folders.items()]


def fragments_naming(db: Connection, project_n: int, file: str) -> list[FileMention]:
    """Return the fragments of a project that contain a file's name."""
    name = " ".join(words.split(file))
    if not name:
        return []
    rows = db.rows(
        "SELECT f.n, i.project_n, f.content FROM"
        f" ({db.words.match_query('fragment_words', 'name')} LIMIT :most) w"
        " JOIN fragments f ON f.n = w.n JOIN items i ON i.n = f.n WHERE i.project_n = :project_n",
        name=db.words.phrase_query(name, column="content"),
        project_n=project_n,
        most=_MAX_NAMING,
    )
    return [FileMention(*row) for row in rows]


def fragments_missing_files(db: Connection) -> list[FileMention]:
    """Return the fragments whose files were missing at the last check."""
    rows = db.rows(
        "SELECT f.n, i.project_n, f.content FROM fragments f JOIN items i ON i.n = f.n"
        " WHERE f.missing_since IS NOT NULL AND i.project_n IS NOT NULL"
    )
    return [FileMention(*row) for row in rows]


def mark_missing_files(
    db: Connection, missing: Sequence[int], back: Sequence[int], *, now: datetime
) -> None:
    """Record whose files are missing from now on, and whose are back."""
    sql = (
        "UPDATE fragments SET missing_since = :at WHERE missing_since IS NULL"
        f" AND {among('n', 'ns')}"
    )
    db.run(sql, at=clock.to_us(now), ns=int_array(missing))
    db.run(
        f"UPDATE fragments SET missing_since = NULL, doubt = 0 WHERE {among('n', 'ns')}",
        ns=int_array(back),
    )


def update_doubt(db: Connection, *, now: datetime) -> int:
    """Set the doubt of fragments by how long their files have been missing; count them.

    A file may be missing for a week, because branches change; then doubt grows by 0.1 a day.
    """
    doubted = "0.1 * ((:now - missing_since) / 8.64e10 - 7)"
    return db.run(
        f"UPDATE fragments SET doubt = CASE WHEN {doubted} > 1 THEN 1.0 ELSE {doubted} END"
        f" WHERE missing_since IS NOT NULL AND {doubted} > 0",
        now=clock.to_us(now),
    )

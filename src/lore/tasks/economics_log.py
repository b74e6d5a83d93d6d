"""The record of token economics: counts of sessions, corrective actions, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from lore.recall.sources import Sources
from lore.records import CarriedOutAction, Checkpoint, EconomicsReport
from lore.store import dialogue_state, task_rows
from lore.store.database import Connection, Database
from lore.store.task_rows import CorrectionRow, EconomicsKey, TaskPlace
from lore.tasks import corrections, disclosure
from lore.tasks.disclosure import MemoryView
from lore.tasks.token_economics import Finding, TokenCounts, check_thresholds, sum_counts
from lore.tasks.topics import Layout

_REPLAYED = 20
"""The last questions of a session that are asked again to measure a corrective action."""

_AGAIN_AFTER_DAYS = 7
"""A metric is corrected at most so often: the next sessions show first what it brought."""


def current_layout(db: Connection, project_n: int | None) -> Layout:
    """Return the present layout of a project: that of the last action that was kept."""
    for row in task_rows.corrections(db, project_n):
        if row.body.get("kept"):
            return corrections.parse_layout(row.body.get("layout"))
    return Layout()


def session_counts(db: Connection, session_n: int) -> TokenCounts:
    """Return the token counts of a session; loads are those of its heaviest task."""
    return sum_counts([
        parse_counts(body, is_task=task_n is not None)
        for task_n, body in task_rows.economics_of_session(db, session_n)
    ])


def put_early_counts(
    db: Connection, name: str, counts: Mapping[str, int], *, now: datetime
) -> None:
    """Keep counts of a session of which nothing is stored yet, until it is."""
    summed = Counter(dialogue_state.find_state(db, name, "economics") or {})
    baseline = max(summed["baseline_tokens"], counts.get("baseline_tokens", 0))
    summed.update(counts)
    early = {**summed, "baseline_tokens": baseline}
    dialogue_state.put_state(db, name, "economics", early, now=now)


def has_early_counts(db: Connection, name: str) -> bool:
    """Return whether counts wait until something of a session is stored."""
    return bool(dialogue_state.find_state(db, name, "economics"))


def add_early_counts(db: Connection, name: str, key: EconomicsKey, *, now: datetime) -> None:
    """Add the counts from before a session was stored to it."""
    early = dialogue_state.find_state(db, name, "economics")
    if early and key.session_n is not None:
        own = EconomicsKey(key.session_n, None, key.project_n)
        task_rows.add_economics(db, own, early, now=now)
        dialogue_state.remove_state(db, name, "economics")


def parse_counts(body: dict[str, int], *, is_task: bool) -> TokenCounts:
    """Return stored counts; only those of a task have a number of loads in one task."""
    known = {name: int(body.get(name, 0)) for name in TokenCounts.__annotations__}
    known["most_task_loads"] = known["layer3_loads"] if is_task else 0
    return TokenCounts(**known)


def check_session(
    database: Database, sources: Sources, checkpoint: Checkpoint, place: TaskPlace, scope: int
) -> list[str]:
    """Check the counts of a session, carry out what corrects them, and return what was done."""
    if place.session_n is None:
        return []
    now = database.now()
    with database.read() as db:
        findings = check_thresholds(checkpoint, session_counts(db, place.session_n))
        due = _due(db, place.project_n, findings, now)
        verbs = ("load", "before_task")
        queries = task_rows.queries_of_session(db, place.session_n, verbs=verbs)[-_REPLAYED:]
        if not due or not queries:
            return []

        def make_view(layout: Layout) -> MemoryView:
            return disclosure.view_memory(sources, db, project_n=scope, now=now, layout=layout)

        layout = current_layout(db, place.project_n)
        done = corrections.correct(sources, make_view, layout, due, queries)
    rows = [
        CorrectionRow(
            now, one.finding.metric, one.finding.action, one.finding.value, one.after,
            {"kept": one.is_kept, "layout": corrections.layout_to_json(one.layout)},
        )
        for one in done
    ]  # fmt: skip
    database.write(partial(_store, rows, place))
    return [one.summary for one in done]


def _due(
    db: Connection, project_n: int | None, findings: list[Finding], now: datetime
) -> list[Finding]:
    """Return the findings that were not corrected lately."""
    rows = task_rows.corrections(db, project_n) if findings else []
    recent = {row.metric for row in rows if (now - row.at).days < _AGAIN_AFTER_DAYS}
    return [one for one in findings if one.metric not in recent]


def _store(rows: list[CorrectionRow], place: TaskPlace, db: Connection) -> None:
    for row in rows:
        task_rows.add_correction(db, row, session_n=place.session_n, project_n=place.project_n)


def make_report(db: Connection, place: TaskPlace, *, by_session: bool) -> EconomicsReport:
    """Return what memory cost and saved in a session, or in all sessions of a project."""
    sessions: dict[int | None, list[TokenCounts]] = {}
    tasks = 0
    for session_n, task_n, body in task_rows.economics_of_project(db, place.project_n):
        if by_session and session_n != place.session_n:
            continue
        tasks += task_n is not None
        counts = parse_counts(body, is_task=task_n is not None)
        sessions.setdefault(session_n, []).append(counts)
    totals = [sum_counts(listed) for listed in sessions.values()]
    whole = sum_counts(totals)
    baseline = sum(one.baseline_tokens for one in totals)
    saved = sum(one.tokens_saved for one in totals if one.baseline_tokens)
    rows = task_rows.corrections(db, place.project_n)
    layout = current_layout(db, place.project_n)
    return EconomicsReport(
        sessions=len(totals),
        tasks=tasks,
        retrievals=whole.retrievals,
        discovery_tokens=whole.discovery_tokens,
        read_tokens=whole.read_tokens,
        ratio=None if whole.ratio is None else round(whole.ratio, 4),
        savings_vs_full_load=round(100 * saved / baseline, 1) if baseline else 0.0,
        tokens_saved=saved,
        baseline_tokens=baseline,
        layer1_loads=whole.layer1_loads,
        layer1_tokens=whole.layer1_tokens,
        layer2_loads=whole.layer2_loads,
        layer2_tokens_scanned=whole.layer2_tokens_scanned,
        layer2_tokens_available=whole.layer2_tokens_available,
        layer3_loads=whole.layer3_loads,
        layer3_tokens=whole.layer3_tokens,
        bypassed=layout.bypass_tokens > 0,
        actions=tuple(
            CarriedOutAction(
                row.at, row.action, row.metric, row.value, row.value_after,
                bool(row.body.get("kept")),
            )
            for row in rows
        ),
    )  # fmt: skip

"""Tasks: started with a briefing, ended with an episode and what of the briefing was used."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from lore import clock, payloads, projects
from lore.digest import fragment_edits
from lore.digest.episodes import parse_episode
from lore.errors import InvalidInput, NotFound
from lore.lazy_dataclass import dataclass
from lore.projects import ProjectFinder
from lore.recall.sources import Sources
from lore.records import (
    OUTCOMES,
    Draft,
    EndedTask,
    Episode,
    InjectedItem,
    Message,
    Outcome,
    RetrievalRecord,
    TaskBriefing,
    TaskMemory,
    TaskRecord,
    TaskType,
)
from lore.redaction.redactor import Redactor
from lore.store import (
    dialogue_state,
    fragments,
    items,
    messages,
    sessions,
    strategy_rows,
    task_rows,
)
from lore.store.database import Connection, Database
from lore.store.task_rows import TaskPlace
from lore.tasks import experiment
from lore.tasks import memory_usage as usage
from lore.tasks import task_brief as briefings
from lore.tasks.task_recall import TaskQuery
from lore.tasks.task_type import detect_task_type, parse_task_type
from lore.text import episodes as episode_text
from lore.text import message_features

LONGEST_GOAL = 8_000
_MOST_MESSAGES = 20_000


@dataclass(frozen=True, slots=True)
class TaskStart:
    """What a caller says about a task that begins."""

    goal: str
    phase: str = ""
    action: str = ""
    task_type: str = ""
    session: str = ""
    project: str = ""
    agent: str = ""
    name: str = ""
    profile: str = ""
    unasked: bool = False
    budget_tokens: int = briefings.BUDGET_TOKENS


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """What a caller says about a task that ended; `report` has the fields of an episode."""

    task: str = ""
    outcome: Outcome = "unknown"
    reason: str = ""
    session: str = ""
    project: str = ""
    agent: str = ""
    used: tuple[str, ...] = ()
    helped: bool | None = None
    report: Mapping[str, Any] | None = None


def find_place(db: Connection, session: str, project: str) -> tuple[TaskPlace, int]:
    """Return where a task belongs, and the scope of what it may be given.

    The scope is a project, or `NO_PROJECT`: memories of other projects are never given.
    """
    session_n = None
    if session:
        try:
            session_n = sessions.get_session_number(db, session)
        except (NotFound, InvalidInput):
            session_n = None  # it is captured later
    project_n = None
    if project:
        project_n = projects.find_project_number(db, project, ProjectFinder().find(project))
    elif session_n is not None:
        project_n = sessions.project_of_session(db, session_n)
    scope = project_n
    if scope is None:
        scope = items.UNKNOWN_PROJECT if project else items.NO_PROJECT
    return TaskPlace(session_n, project_n), scope


def begin_task(
    database: Database, sources: Sources, redactor: Redactor, start: TaskStart
) -> tuple[TaskRecord, TaskBriefing]:
    """Store a task and return it with what is known for it.

    If the session has an open task of the same name, that one goes on with a new briefing.
    """
    began = time.perf_counter()
    start = _clean(start, redactor)
    type_ = parse_task_type(start.task_type) or detect_task_type(
        start.goal, action=start.action, phase=start.phase
    )
    now = database.now()
    with database.read() as db:
        place, scope = find_place(db, start.session, start.project)
        profile = experiment.choose_profile(db, place.session_n, start.session, start.profile)
        start = replace(start, profile=profile.name)
        known = task_rows.find_named_task(db, start.name, place) if start.name else None
        own = sessions.session_family(db, place.session_n) if place.session_n is not None else ()
        had = (
            dialogue_state.find_injections(db, start.session).items
            if start.unasked and start.session
            else ()
        )
        query = TaskQuery(
            start.goal, type_, scope, now, profile.weights[type_], tuple(own),
            unasked=start.unasked, known=frozenset(had), settings=profile.settings,
        )  # fmt: skip
        briefing = briefings.brief(sources, db, query, budget_tokens=start.budget_tokens)
    task = known[1] if known else _new_task(start, type_, now)
    briefing = replace(briefing, task_id=task.id)
    if not database.read_only:
        log = RetrievalRecord(
            now, "before_task", start.goal, type_, start.profile,
            candidates=briefing.considered,
            chosen=tuple(entry.id for entry in briefings.entries_of(briefing)),
            took_ms=(time.perf_counter() - began) * 1000, tokens=briefing.tokens,
        )  # fmt: skip
        database.write(lambda db: _store_start(db, task, briefing, log, start, known))
    return task, briefing


def _clean(start: TaskStart, redactor: Redactor) -> TaskStart:
    goal = redactor.redact(start.goal).strip()[:LONGEST_GOAL]
    if not goal:
        msg = "A task needs a goal: say in a sentence what is to be done."
        raise InvalidInput(msg)
    return replace(
        start,
        goal=goal,
        phase=redactor.redact(start.phase).strip(),
        action=redactor.redact(start.action).strip(),
        session=redactor.redact(start.session).strip(),
        project=redactor.redact(start.project).strip(),
        agent=redactor.redact(start.agent).strip(),
        name=redactor.redact(start.name).strip(),
    )


def _new_task(start: TaskStart, type_: TaskType, now: datetime) -> TaskRecord:
    return TaskRecord(
        clock.new_id(now), start.goal, start.phase, start.action, type_, "open", now,
        name=start.name, agent=start.agent, profile=start.profile,
    )  # fmt: skip


def _store_start(
    db: Connection,
    task: TaskRecord,
    briefing: TaskBriefing,
    log: RetrievalRecord,
    start: TaskStart,
    known: tuple[int, TaskRecord] | None,
) -> None:
    place, _ = find_place(db, start.session, start.project)
    if place.project_n is None and start.project:
        location = ProjectFinder().find(start.project)
        project_n = projects.ensure_project(db, start.project, location, now=log.at)
        place = place._replace(project_n=project_n)
    if place.session_n is not None:
        strategy_rows.assign_session(db, place.session_n, task.profile, now=log.at)
    n = known[0] if known else task_rows.add_task(db, task, place)
    entries = [(one.id, one.kind, one.tokens) for one in briefings.entries_of(briefing)]
    task_rows.add_memories(db, n, entries, now=log.at)
    ns = items.numbers_of(db, log.chosen)
    fragments.mark_used(db, [*ns.values()], now=log.at)
    if start.unasked and start.session:
        given_items = [
            InjectedItem(ns[one.id], message_features.word_fingerprint(one.text))
            for one in briefings.entries_of(briefing)
            if one.id in ns
        ]
        dialogue_state.add_injections(db, start.session, given_items, now=log.at)
    task_rows.log_task_retrieval(db, log, session_n=place.session_n, task_n=n)


def finish_task(database: Database, redactor: Redactor, end: TaskEnd) -> EndedTask:
    """Close a task: store its episode, and which of the given memories were used and helped.

    What the caller does not report is derived from the messages of the session since the task
    began. A success that the end of the session contradicts is stored as partial.
    """
    if end.outcome not in OUTCOMES:
        msg = f"'{end.outcome}' is not an outcome."
        raise InvalidInput(msg, hint=f"Outcomes: {', '.join(OUTCOMES)}.")
    report = payloads.require_task_payload(
        "episode", {"goal": "-", "outcome": end.outcome, **(end.report or {})}
    )
    now = database.now()
    with database.read() as db:
        n, task = _find_task(db, end)
        session = task.session_id or end.session
        place, _ = find_place(db, redactor.redact(session), redactor.redact(end.project))
        followed = _messages_since(db, place.session_n, task.started_at)
        entries = task_rows.memories_of(db, n)
        loaded = fragments.by_number(
            db, [*items.numbers_of(db, [one.item_id for one in entries]).values()]
        )
    derived = episode_text.derive_episode(followed, agent=task.agent) if followed else None
    outcome, reason = judge_outcome(end, derived)
    episode = _merge(task, report, derived, outcome, reason, _seconds(now - task.started_at))
    seen = usage.follow_messages(followed) | usage.follow_report(
        report.get("actions") or (),
        (*episode["files_read"], *episode["files_changed"]),
        end.used,
    )
    by_id = {fragment.id: fragment for fragment in loaded.values()}
    memories = tuple(_judge_memory(one, by_id, seen, outcome, helped=end.helped) for one in entries)
    draft = _episode_draft(task, episode, derived, end)
    work = fragment_edits.prepare_store(database, draft, redactor)

    def store(db: Connection) -> str:
        id_ = task.episode_id or work(db)
        task_rows.end_task(
            db, n, outcome=outcome, reason=redactor.redact(reason), ended_at=now,
            episode_n=items.resolve(db, id_).n, session_n=place.session_n,
        )  # fmt: skip
        task_rows.put_costs(db, n, {name: episode[name] for name in ("retries", "tokens")})
        task_rows.put_usage(db, n, memories, now=now)
        task_rows.set_retrieval_outcome(db, n, outcome)
        return id_

    id_ = database.write(store)
    ended = replace(
        task, state="done", outcome=outcome, reason=reason, ended_at=now, episode_id=id_
    )
    return EndedTask(ended, id_, memories)


def _seconds(duration: timedelta) -> int:
    """Return whole seconds; the clock may have been set back."""
    return max(0, int(duration.total_seconds()))


def _find_task(db: Connection, end: TaskEnd) -> tuple[int, TaskRecord]:
    place, _ = find_place(db, end.session, end.project)
    if end.task:
        is_placed = bool(end.session or end.project)
        return task_rows.get_task(db, end.task, place if is_placed else None)
    open_task = task_rows.find_open_task(db, place)
    if open_task is None:
        msg = "No task is open here."
        raise NotFound(msg, hint="Start one with a goal first, or name the task.")
    return open_task


def _messages_since(db: Connection, session_n: int | None, since: datetime) -> list[Message]:
    if session_n is None:
        return []
    all_messages = messages.messages_of_session(db, session_n, limit=_MOST_MESSAGES)
    return [message for message in all_messages if message.created_at >= since]


def judge_outcome(end: TaskEnd, derived: Episode | None) -> tuple[Outcome, str]:
    """Return the outcome of a task and the sign for it.

    The caller's word counts, unless the session ended in a failed check or a correction.
    """
    if end.outcome == "unknown":
        return (derived.outcome, derived.reason) if derived else ("unknown", end.reason)
    if end.outcome == "success" and derived and derived.outcome in ("failure", "partial"):
        return "partial", f"called a success, but {derived.reason}"
    return end.outcome, end.reason or "as the agent reported it"


def _merge(
    task: TaskRecord,
    report: Mapping[str, Any],
    derived: Episode | None,
    outcome: Outcome,
    reason: str,
    duration_s: int,
) -> dict[str, Any]:
    """Return the payload of the episode: what was reported, else what the messages show."""
    from lore.digest.episodes import episode_to_payload

    base = episode_to_payload(derived or Episode(task.goal, outcome, reason))
    base |= {name: value for name, value in report.items() if name not in ("goal", "outcome")}
    base |= {
        "goal": task.goal, "outcome": outcome, "reason": reason, "task_id": task.name or task.id,
        "phase": task.phase or base.get("phase", ""), "agent": task.agent,
        "duration_s": report.get("duration_s") or base.get("duration_s") or duration_s,
        "calls": base.get("calls") or len(base.get("actions") or ()), "tasks": [],
    }  # fmt: skip
    for name in ("files_read", "files_changed", "actions", "errors"):
        base[name] = list(base.get(name) or ())
    tried_again = sum(1 for error in base["errors"] if error.get("retry"))
    base |= {"retries": base.get("retries") or tried_again, "tokens": base.get("tokens") or 0}
    return base


def _episode_draft(
    task: TaskRecord, payload: Mapping[str, Any], derived: Episode | None, end: TaskEnd
) -> Draft:
    content = episode_text.format_episode(parse_episode(dict(payload)))
    return Draft(
        content=content,
        summary=task.goal,
        kind="episode",
        depth=0,
        importance=0.4,
        origin="assistant",
        project=task.project_id or end.project,  # a task ended from elsewhere stays where it is
        session=task.session_id,
        source_messages=derived.sources if derived else (),
        payload=payload,
        metadata={"task": task.id},
    )


def _judge_memory(
    one: TaskMemory,
    loaded: Mapping[str, Any],
    followed: usage.WhatFollowed,
    outcome: Outcome,
    *,
    helped: bool | None,
) -> TaskMemory:
    """Return whether a memory was used, and whether it helped: it did if the task succeeded."""
    fragment = loaded.get(one.item_id)
    sign = usage.find_sign(fragment, followed) if fragment else None
    if sign is None:
        return replace(one, used=False, sign="", helped=None)
    by_outcome = {"success": True, "failure": False}.get(outcome)
    return replace(one, used=True, sign=sign, helped=by_outcome if helped is None else helped)

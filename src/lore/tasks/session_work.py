"""Session work: read the new messages of a session into its stored working state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from lore.embed import Embedder
from lore.llm.offline import extractor
from lore.records import TRUST, UNASKED_TRUST, Message, Segment
from lore.records.task_records import WorkingState
from lore.store import handoff_rows, messages, project_rows, sessions
from lore.store.database import Connection, Database
from lore.tasks.agent_task_list import ListedTask
from lore.tasks.working_state import (
    NOTE_CHARS,
    SECTIONS,
    Note,
    PersonEdits,
    StateDelta,
    TrackedState,
    WorkContext,
    advance,
    diff_states,
    with_edits,
)
from lore.text import sentences, transcript_text
from lore.text.message_features import lowest_origin

_MOST_MESSAGES = 4_000
"""Messages of one task that are read again; a longer task is read from its latest part."""

_MOST_READ = 400
"""New messages of a turn in which decisions are looked for."""

_DECIDED = ("decision", "preference")
_TURN_DECISIONS = 3
"""A turn with more decisions is a plan, of which the most important are kept."""


def update_state(
    database: Database, session_n: int, embedder: Embedder | None = None
) -> tuple[TrackedState, StateDelta]:
    """Read a session's new messages into its state, store it, and return what changed."""
    with database.read() as db:
        before = load_state(db, session_n)
        last = messages.last_ordinal(db, session_n)
        if last <= before.read_to:
            return before, StateDelta()
        session = sessions.get_session(db, session_n)
        first = max(before.task_from, last - _MOST_MESSAGES)
        dialogue = messages.messages_of_session(
            db, session_n, first=first, limit=_MOST_MESSAGES + 1
        )
        project_n = sessions.project_of_session(db, session_n)
        folder = project_rows.all_projects(db)[project_n].path if project_n is not None else ""
    new = [one for one in dialogue if one.ordinal > before.read_to]
    after = advance(
        before,
        dialogue,
        decisions=find_decisions(new, embedder),
        folder=folder,
        branch=session.branch,
        agent=session.agent,
    )
    delta = diff_states(before, after)
    if not database.read_only:
        body = {**state_to_body(after), "delta": _plain(asdict(delta))}
        at = session.last_message_at
        database.write(lambda db: _store(db, session_n, before, body, at))
    return after, delta


def _store(
    db: Connection, session_n: int, before: TrackedState, body: Mapping[str, Any], at: datetime
) -> None:
    """Store a state, unless another process has read further meanwhile."""
    if load_state(db, session_n).read_to == before.read_to:
        handoff_rows.put_working_state(db, session_n, body, now=at)


def load_state(db: Connection, session_n: int) -> TrackedState:
    """Return the stored state of a session; an empty one without any."""
    row = handoff_rows.find_working_state(db, session_n)
    return parse_state(row.body) if row else TrackedState()


def end_state(database: Database, session_n: int) -> None:
    """Record that a session has ended; it goes on with its next message."""

    def work(db: Connection) -> None:
        row = handoff_rows.find_working_state(db, session_n)
        if row is not None:
            ended = replace(parse_state(row.body), ended=True)
            handoff_rows.put_working_state(db, session_n, state_to_body(ended), now=row.updated_at)

    database.write(work)


def edit_state(db: Connection, session_n: int, edits: PersonEdits, *, now: datetime) -> None:
    """Store what a person changed in a session's state."""
    state = load_state(db, session_n)
    changed = with_edits(replace(state, edits=state.edits.joined(edits)))
    handoff_rows.put_working_state(db, session_n, state_to_body(changed), now=now)


def find_decisions(new: Sequence[Message], embedder: Embedder | None) -> list[Note]:
    """Return what new messages decided, in the words of the person or the assistant."""
    trusted = [one for one in new if TRUST[lowest_origin(one.parts, one.origin)] >= UNASKED_TRUST][
        -_MOST_READ:
    ]
    texts = transcript_text.render_messages(trusted, transcript_text.FOR_KNOWLEDGE)
    texts = [one for one in texts if one.text]
    if not texts:
        return []
    usable = embedder if embedder is not None and embedder.dimension else None
    segment = Segment(trusted[0].session_id, tuple(texts))
    extracts = extractor.extract(
        segment,
        embed=usable.embed if usable else None,
        encoder=usable.identity if usable else "",
    )
    flat = [one for each in extracts for one in (each, *each.children)]
    decided = [one for one in flat if one.kind in _DECIDED and not one.payload.get("command")]
    best = sorted(decided, key=lambda one: -one.importance)[:_TURN_DECISIONS]
    return [
        Note(sentences.one_line(one.content, NOTE_CHARS), one.sources[0] if one.sources else "")
        for one in decided
        if one in best
    ]


def to_record(state: TrackedState, *, updated_at: datetime | None = None) -> WorkingState:
    """Return a state as callers see it."""
    context = state.context
    return WorkingState(
        task=state.task.text,
        **{name: tuple(note.text for note in getattr(state, name)) for name in SECTIONS},
        context={
            "last_request": state.request.text,
            "ended": state.ended,
            "outcome": state.outcome,
            "reason": state.reason,
            "files": list(context.files),
            "uncommitted": list(context.uncommitted),
            "commits": [note.text for note in context.commits],
            "pages": list(context.pages),
            "check": context.check,
            "branch": context.branch,
            "agent": context.agent,
        },
        updated_at=updated_at,
    )


def state_to_body(state: TrackedState) -> dict[str, Any]:
    """Return a state as plain values."""
    body: dict[str, Any] = _plain(asdict(state))
    return body


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple | list) else value


def parse_state(body: Mapping[str, Any]) -> TrackedState:
    """Parse a stored state; values that do not fit are left out."""
    context = _table(body, "context")
    edits = _table(body, "edits")
    outcome = body.get("outcome")
    return TrackedState(
        task=_note(body.get("task")),
        request=_note(body.get("request")),
        **{name: _notes(body, name) for name in (*SECTIONS, "finished")},
        context=WorkContext(
            files=_texts(context, "files"),
            uncommitted=_texts(context, "uncommitted"),
            commits=_notes(context, "commits"),
            pages=_texts(context, "pages"),
            check=_text(context, "check"),
            branch=_text(context, "branch"),
            agent=_text(context, "agent"),
        ),
        outcome=outcome if outcome in ("success", "failure", "partial") else "unknown",
        reason=_text(body, "reason"),
        listed=tuple(
            ListedTask(_text(one, "subject"), _status(one), _text(one, "id"))
            for one in _list(body, "listed")
            if isinstance(one, dict) and _text(one, "subject")
        ),
        ended=body.get("ended") is True,
        edits=PersonEdits(_edits(edits, "added"), _edits(edits, "removed")),
        read_to=_number(body, "read_to", -1),
        task_from=_number(body, "task_from", 0),
    )


def _status(one: Mapping[str, Any]) -> Any:
    status = one.get("status")
    return status if status in ("in_progress", "completed") else "pending"


def _edits(table: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    by_section = _table(table, name)
    return {section: _texts(by_section, section) for section in by_section}


def _note(value: Any) -> Note:
    if not isinstance(value, dict):
        return Note("")
    return Note(_text(value, "text"), _text(value, "source"))


def _notes(table: Mapping[str, Any], name: str) -> tuple[Note, ...]:
    return tuple(note for one in _list(table, name) if (note := _note(one)).text)


def _list(table: Mapping[str, Any], name: str) -> list[Any]:
    value = table.get(name)
    return value if isinstance(value, list) else []


def _texts(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(one for one in _list(table, name) if isinstance(one, str))


def _text(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name)
    return value if isinstance(value, str) else ""


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _number(table: Mapping[str, Any], name: str, default: int) -> int:
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default

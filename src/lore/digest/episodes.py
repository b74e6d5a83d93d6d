"""Episodes and working state: what a session was asked for, did, and ended with."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.records import (
    Action,
    Episode,
    EpisodeError,
    Fragment,
    Origin,
    Outcome,
    StoredEpisode,
    Task,
)
from lore.store import (
    distillations,
    fragments,
    history,
    items,
    messages,
    pages,
    project_rows,
    sessions,
)
from lore.store.database import Connection, Database
from lore.store.fragments import NewFragment
from lore.text import entities, goals, sentences
from lore.text import episodes as episode_text
from lore.text.message_features import is_spoken_part, part_origin

MAX_MESSAGES = 100_000
"""The episode of a longer session is derived from its beginning."""

IMPORTANCE = 0.4
"""Below what users store: every session has an episode."""


def store_episode(database: Database, session: str, episode: Episode) -> str | None:
    """Store a session's episode as a fragment and return its id; None if it was deleted.

    Called again, it updates the same fragment, and only if something changed. A fragment that a
    user deleted or revoked stays hidden.
    """
    now = database.now()
    return database.write(
        lambda db: _store(db, sessions.get_session_number(db, session), episode, now)
    )


def derive_episode(database: Database, session: str) -> Episode | None:
    """Derive the episode of a session, without storing it."""
    with database.read() as db:
        session_n = sessions.get_session_number(db, session)
        row = sessions.get_session(db, session_n)
        dialogue = messages.messages_of_session(db, session_n, limit=MAX_MESSAGES)
    return episode_text.derive_episode(dialogue, agent=row.agent, title=row.title)


def session_of(db: Connection, name: str) -> str:
    """Return the id of a session, given itself or the fragment of its episode."""
    try:
        session_n = items.resolve(db, name, type="fragment").session_n
    except (NotFound, InvalidInput):
        session_n = None
    return sessions.get_session(db, session_n or sessions.get_session_number(db, name)).id


def recent_episodes(db: Connection, *, project: str, limit: int) -> list[StoredEpisode]:
    """Return the latest stored episodes, newest first."""
    project_n = project_rows.get_project(db, project) if project else None
    ns = [n for _, n in pages.episodes(db, (), project_n=project_n, limit=limit)]
    by_number = fragments.by_number(db, ns)
    stored = [load_episode(db, by_number[n]) for n in ns if n in by_number]
    return [one for one in stored if one.episode.goal or one.episode.calls]


def load_episode(db: Connection, fragment: Fragment) -> StoredEpisode:
    """Return the episode that a fragment stores."""
    at = fragment.created_at
    if fragment.session_id:
        at = sessions.get_session(
            db, sessions.get_session_number(db, fragment.session_id)
        ).last_message_at
    return StoredEpisode(fragment, parse_episode(fragment.payload), at)


def _store(db: Connection, session_n: int, episode: Episode, now: datetime) -> str | None:
    source_ns = [items.resolve(db, id_, type="message").n for id_ in episode.sources]
    own: Origin = "tool" if episode.titled else "assistant"  # a title has no origin of its own
    origin = messages.lowest_trust_origin(db, own, source_ns)
    content = episode_text.format_episode(episode)
    title = sentences.summary(episode.goal) or f"{episode.calls} tool calls"
    payload, mentions = episode_to_payload(episode), entities.extract_mentions(content, title=title)
    n = distillations.find_episode(db, session_n)
    if n is None:
        new = NewFragment(
            id=clock.new_id(now),
            content=content,
            summary=title,
            kind="episode",
            created_at=min(now, sessions.get_session(db, session_n).last_message_at),
            payload=payload,
            importance=IMPORTANCE,
            origin=origin,
            project_n=sessions.project_of_session(db, session_n),
            session_n=session_n,
            source_messages=episode.sources,
            mentions=mentions,
            metadata=distillations.SESSION_EPISODE,
        )
        fragments.add(db, new, now=now)
        return new.id
    if fragments.is_deleted(db, n):
        return None
    old = fragments.get(db, n)
    if (old.payload, old.source_messages) != (payload, episode.sources):
        distillations.update_episode(
            db, n, payload=payload, source_messages=episode.sources, origin=origin
        )
        history.log_change(db, "change", [n], now)
    if (old.content, old.summary) != (content, title):
        fragments.update(
            db,
            n,
            content=content,
            summary=title,
            mentioned=mentions,
            now=now,
            reason="the session went on",
        )
    return old.id


def episode_to_payload(episode: Episode) -> dict[str, Any]:
    """Return an episode as plain values; its sources are stored with the fragment."""
    values = asdict(episode)
    del values["sources"]
    for name in _TASK_FIELDS:
        if not values[name]:
            del values[name]
    for action in values["actions"]:
        if not action["error"]:
            del action["error"]
    return {name: _plain(value) for name, value in values.items()}


_TASK_FIELDS = ("task_id", "phase", "constraints", "retries")
"""Only what an agent tells about its task has these; sessions are stored without them."""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


def parse_episode(payload: dict[str, Any]) -> Episode:
    """Parse the episode in a payload; fields that do not fit are left out."""
    return Episode(
        goal=str(payload.get("goal", "")),
        outcome=_outcome(payload),
        reason=str(payload.get("reason", "")),
        agent=str(payload.get("agent", "")),
        calls=_number(payload, "calls"),
        actions=tuple(
            Action(
                _number(a, "t"),
                str(a.get("action", "")),
                str(a.get("target", "")),
                _result(a),
                str(a.get("error", "")),
            )
            for a in _tables(payload, "actions")
        ),
        errors=_errors(payload),
        files_read=_texts(payload, "files_read"),
        files_changed=_texts(payload, "files_changed"),
        artifacts=_texts(payload, "artifacts"),
        commits=_texts(payload, "commits"),
        tasks=tuple(_task(task) for task in _tables(payload, "tasks")),
        duration_s=_number(payload, "duration_s"),
        tokens=_number(payload, "tokens"),
        titled=payload.get("titled") is True,
        task_id=str(payload.get("task_id", "")),
        phase=str(payload.get("phase", "")),
        constraints=_texts(payload, "constraints"),
        retries=_number(payload, "retries"),
    )


def _task(table: dict[str, Any]) -> Task:
    return Task(
        goal=str(table.get("goal", "")),
        outcome=_outcome(table),
        reason=str(table.get("reason", "")),
        first=_number(table, "first"),
        last=_number(table, "last"),
        calls=_number(table, "calls"),
        errors=_errors(table),
        files_read=_texts(table, "files_read"),
        files_changed=_texts(table, "files_changed"),
    )


_ERROR_FIELDS = ("type", "message", "resolution", "command", "retry")


def _outcome(table: dict[str, Any]) -> Outcome:
    outcome = table.get("outcome")
    return outcome if outcome in ("success", "failure", "partial") else "unknown"


def _errors(table: dict[str, Any]) -> tuple[EpisodeError, ...]:
    return tuple(
        EpisodeError(*(str(error.get(name, "")) for name in _ERROR_FIELDS))
        for error in _tables(table, "errors")
    )


def _result(action: dict[str, Any]) -> Any:
    result = action.get("result")
    return result if result in ("ok", "failed", "refused") else "none"


def _number(table: dict[str, Any], name: str) -> int:
    value = table.get(name)
    return value if isinstance(value, int) else 0


def _list(table: dict[str, Any], name: str) -> list[Any]:
    value = table.get(name)
    return value if isinstance(value, list) else []


def _tables(table: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [item for item in _list(table, name) if isinstance(item, dict)]


def _texts(table: dict[str, Any], name: str) -> tuple[str, ...]:
    return tuple(item for item in _list(table, name) if isinstance(item, str))


_MAX_RECENT_MESSAGES = 400
"""The user's last words precede everything that the agent did about them."""

_REQUEST_CHARS = 240


def store_working_state(database: Database, session: str) -> None:
    """Store the last request of a session."""
    with database.read() as db:
        n = sessions.get_session_number(db, session)
        state = _last_request(db, n)
    if state and not database.read_only:
        now = database.now()
        database.write(lambda db: sessions.put_session_state(db, n, "working", state, now=now))


def _last_request(db: Connection, n: int) -> dict[str, str]:
    first = max(0, messages.last_ordinal(db, n) - _MAX_RECENT_MESSAGES)
    for message in reversed(messages.messages_of_session(db, n, first=first)):
        if message.role != "user":
            continue
        typed = (
            part.text
            for part in message.parts
            if is_spoken_part(part) and part_origin(part, message.origin) == "user"
        )
        request = goals.parse_request("\n".join(typed))
        asked = sentences.one_line(request.text, _REQUEST_CHARS) if request else ""
        if request and asked and not request.command:
            return {"id": message.id, "asked": asked}
    return {}

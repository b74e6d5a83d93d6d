"""Episodes of sessions, kept as fragments: one for each, told anew when the session went on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.records import Action, Episode, Fragment, KeptEpisode, Mishap, Origin, Outcome, Task
from lore.store import changes, episodes, fragments, items, messages, sessions, trusting
from lore.store.db import Connection, Database
from lore.store.fragments import NewFragment
from lore.text import entities, lines
from lore.text import episodes as telling

MOST_MESSAGES = 100_000
"""A session that went on for longer is told by its beginning."""

IMPORTANCE = 0.4
"""Below what someone found worth storing: there is an episode of every session."""


def keep(database: Database, session: str, episode: Episode) -> str | None:
    """Keep a session's episode as its fragment and return the id; None if it is to stay away.

    Again, it changes the same fragment, and only if there is something new. One that a person
    deleted or revoked stays so.
    """
    return database.write(lambda db: _keep(database, db, sessions.get_number(db, session), episode))


def derive(database: Database, session: str) -> Episode | None:
    """Tell a session as an episode, without keeping it."""
    with database.read() as db:
        session_n = sessions.get_number(db, session)
        known = sessions.get(db, session_n)
        said = messages.of_session(db, session_n, limit=MOST_MESSAGES)
    return telling.derive(said, agent=known.agent, title=known.title)


def session_of(db: Connection, name: str) -> str:
    """Return the id of a session, named by itself or by the fragment that tells it."""
    try:
        session_n = items.resolve(db, name, type="fragment").session_n
    except (NotFound, InvalidInput):
        session_n = None
    return sessions.get(db, session_n or sessions.get_number(db, name)).id


def newest(db: Connection, *, project: str, limit: int) -> list[KeptEpisode]:
    """Return the latest episodes that were kept, newest first."""
    project_n = sessions.get_project(db, project) if project else None
    ns = episodes.newest(db, project_n=project_n, limit=limit)
    found = fragments.by_number(db, ns)
    told = [kept(db, found[n]) for n in ns if n in found]
    return [one for one in told if one.episode.goal or one.episode.calls]


def kept(db: Connection, fragment: Fragment) -> KeptEpisode:
    """Return the episode that a fragment keeps."""
    at = fragment.created_at
    if fragment.session_id:
        at = sessions.get(db, sessions.get_number(db, fragment.session_id)).last_message_at
    return KeptEpisode(fragment, episode_of(fragment.payload), at)


def _keep(database: Database, db: Connection, session_n: int, episode: Episode) -> str | None:
    source_ns = [items.resolve(db, id_, type="message").n for id_ in episode.sources]
    own: Origin = "tool" if episode.titled else "assistant"  # a title has no origin to go by
    origin = trusting.lowest(db, own, source_ns)
    n = episodes.find(db, session_n)
    if n is None:
        return _add(database, db, session_n, episode, origin)
    if fragments.is_deleted(db, n):
        return None
    _change(database, db, n, episode, origin)
    return fragments.get(db, n).id


def _add(
    database: Database, db: Connection, session_n: int, episode: Episode, origin: Origin
) -> str:
    now = database.now()
    content = telling.readable(episode)
    title = _title(episode)
    new = NewFragment(
        id=clock.new_id(now),
        content=content,
        summary=title,
        kind="episode",
        created_at=min(now, sessions.get(db, session_n).last_message_at),
        payload=payload_of(episode),
        importance=IMPORTANCE,
        origin=origin,
        project_n=sessions.project_number(db, session_n),
        session_n=session_n,
        source_messages=episode.sources,
        mentions=entities.extract(content, title=title),
        metadata=episodes.TOLD,
    )
    fragments.add(db, new, now=now)
    return new.id


def _change(database: Database, db: Connection, n: int, episode: Episode, origin: Origin) -> None:
    now = database.now()
    content, title = telling.readable(episode), _title(episode)
    old = fragments.get(db, n)
    payload = payload_of(episode)
    if (old.payload, old.source_messages) != (payload, episode.sources):
        episodes.renew(db, n, payload=payload, source_messages=episode.sources, origin=origin)
        changes.log(db, "change", [n], now)
    if (old.content, old.summary) != (content, title):
        fragments.update(
            db,
            n,
            content=content,
            summary=title,
            mentioned=entities.extract(content, title=title),
            now=now,
            reason="the session went on",
        )


def _title(episode: Episode) -> str:
    return lines.summary(episode.goal) or f"{episode.calls} tool calls"


def payload_of(episode: Episode) -> dict[str, Any]:
    """Return an episode as plain values; its sources stand with the fragment."""
    values = asdict(episode)
    del values["sources"]
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


def episode_of(payload: dict[str, Any]) -> Episode:
    """Return the episode in a payload; what another program wrote is taken as far as it fits."""
    return Episode(
        goal=str(payload.get("goal", "")),
        outcome=_outcome(payload),
        reason=str(payload.get("reason", "")),
        agent=str(payload.get("agent", "")),
        calls=_number(payload, "calls"),
        actions=tuple(
            Action(_number(a, "t"), str(a.get("action", "")), str(a.get("target", "")), _result(a))
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


def _outcome(table: dict[str, Any]) -> Outcome:
    outcome = table.get("outcome")
    return outcome if outcome in ("success", "failure", "partial") else "unknown"


def _errors(table: dict[str, Any]) -> tuple[Mishap, ...]:
    return tuple(
        Mishap(*(str(error.get(name, "")) for name in ("type", "message", "resolution")))
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

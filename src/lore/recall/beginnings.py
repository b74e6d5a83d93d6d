"""Beginnings: what a session is told when it begins, all of it from trusted origins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lore.recall.answering import fit_standing
from lore.recall.sources import Sources
from lore.records import UNASKED_TRUST, Beginning, Fragment, Outcome, Past, Session
from lore.store import episodes, fragments, messages, session_states, sessions
from lore.store import standing as instructions
from lore.store.db import Connection
from lore.text import goals, stories, words

MOST_PAST, MOST_ROOTS = 4, 10
_LOOKED_AT = 40
"""Subagents' sessions, small talk and roots of low trust stand between."""

_SHORT = 60
"""A talk that goes on for so many messages is not small."""


_FEW_REQUESTS = 2
"""Who asks memory for something, and at most once more, did nothing else that is worth telling."""


def gather(
    sources: Sources, db: Connection, *, project_n: int | None, without: Sequence[int]
) -> Beginning:
    """Return what a session in a project is told; sessions `without` are its own."""
    standing = fit_standing(sources, None, instructions.newest(db, project_n), db)
    return Beginning(standing, _past(db, project_n, without), _roots(db, project_n))


def _past(db: Connection, project_n: int | None, without: Sequence[int]) -> tuple[Past, ...]:
    """Return the last sessions of a project that a person worked in, newest first.

    What several were for is told of the newest.
    """
    found: dict[str, Past] = {}
    for session in sessions.recent(db, project_n=project_n, limit=_LOOKED_AT):
        n = sessions.get_number(db, session.id)
        if session.parent_id is None and n not in without:
            past = _told(db, n, session) or _at_work(db, n, session)
            if past and _same(past.goal) not in found and not _is_small_talk(db, n):
                found[_same(past.goal)] = past
        if len(found) == MOST_PAST:
            break
    return tuple(found.values())


def _same(goal: str) -> str:
    """Return what a goal has in common with one that says the same."""
    return " ".join(words.split(goal))


def _is_small_talk(db: Connection, n: int) -> bool:
    """Tell whether nothing came of a session: nothing was done, decided or learned in it."""
    said = messages.of_session(db, n, limit=_SHORT)
    if len(said) == _SHORT:
        return False
    story = stories.tell(said)
    if story.asked_memory and not story.deeds and len(story.requests) <= _FEW_REQUESTS:
        return True
    if story.deeds or not goals.is_small_talk(text for text, _ in story.requests):
        return False
    return not fragments.learned_from(db, n)


def _told(db: Connection, n: int, session: Session) -> Past | None:
    """Return a session by its episode; of one that quotes tools, only what the person said."""
    episode_n = episodes.find(db, n)
    if episode_n is None or fragments.is_deleted(db, episode_n):
        return None
    kept = fragments.get(db, episode_n)
    goal = str(kept.payload.get("goal", ""))
    if not goal or kept.payload.get("titled") or kept.superseded_by:
        return None
    if kept.origin in ("peer", "repo", "web"):
        return None
    outcome = _outcome(kept.payload)
    left = "" if outcome == "success" else _left(kept)
    return Past(kept.id, session.last_message_at, goal, outcome, left)


def _left(kept: Fragment) -> str:
    """Return what an episode left open: the last of several tasks that was not done, or why."""
    tasks = kept.payload.get("tasks")
    undone = [
        str(task.get("goal", ""))
        for task in (tasks if isinstance(tasks, list) and len(tasks) > 1 else ())
        if isinstance(task, dict) and task.get("outcome") != "success"
    ]
    if undone:
        return undone[-1]
    return str(kept.payload.get("reason", "")) if kept.trust >= UNASKED_TRUST else ""


def _outcome(payload: Mapping[str, Any]) -> Outcome:
    outcome = payload.get("outcome")
    return outcome if outcome in ("success", "failure", "partial") else "unknown"


def _at_work(db: Connection, n: int, session: Session) -> Past | None:
    """Return a session that was not told yet by what it was at when its last turn ended.

    Not by its title: whoever brings in messages says it, and it has no origin.
    """
    state = session_states.find(db, n, "working")
    if not isinstance(state, dict) or not state.get("id"):
        return None
    goal = str(state.get("asked", ""))
    return Past(str(state["id"]), session.last_message_at, goal, "unknown") if goal else None


def _roots(db: Connection, project_n: int | None) -> tuple[tuple[str, str], ...]:
    """Return the strongest roots, by id and title."""
    ns = [n for n, _ in fragments.roots(db, project_n=project_n, limit=_LOOKED_AT)]
    found = fragments.by_number(db, ns)
    told = [
        (found[n].id, found[n].summary or found[n].content)
        for n in ns
        if n in found and found[n].trust >= UNASKED_TRUST and found[n].kind != "episode"
    ]
    return tuple(told[:MOST_ROOTS])

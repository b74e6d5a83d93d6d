"""What a session is given at its start, and what changes in memory while it runs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lore import clock
from lore.recall.answer import describe_instructions, fit_standing_instructions
from lore.recall.known_topics import KnownTopic, choose_topics
from lore.recall.sources import Sources
from lore.records import (
    TRUST,
    UNASKED_TRUST,
    Fragment,
    Outcome,
    PastSession,
    Session,
    SessionBriefing,
)
from lore.store import (
    dialogue_state,
    distillations,
    fragments,
    items,
    messages,
    native_rows,
    replacements,
    sessions,
)
from lore.store import standing_instructions as instructions
from lore.store.database import Connection
from lore.text import episodes as stories
from lore.text import goals, message_features, sentences, statements, words
from lore.text.regex import compile_lazy
from lore.text.statements import is_proposal

MOST_PAST = 4
MOST_SUGGESTED = 2
"""Sentences about which an agent may ask whether they are rules: more would be a nuisance."""

_SESSIONS_READ = 40
"""Sessions that are read: subagents and small talk are dropped."""

_SHORT = 60
"""A session of this many messages is not small talk."""


_NEWER_CHARS = 160
"""Characters of a newer statement: enough for the value that it gives."""

_FEW_REQUESTS = 2
"""A session that asks memory, and at most once for something else, is not worth showing."""


def gather_briefing(
    sources: Sources,
    db: Connection,
    *,
    project_n: int | None,
    without: Sequence[int],
    agent: str = "",
) -> SessionBriefing:
    """Return what a session in a project is given at its start; `without` are its own sessions.

    Everything is from trusted origins. What `agent` reads itself, in its own files, is left out.
    """
    sizes = instructions.current_sizes(db, project_n)
    own = native_rows.notes_of_agent(db, [size.item_n for size in sizes], agent)
    sizes = [size for size in sizes if size.item_n not in own]
    suggested = instructions.current_suggestions(db, project_n, limit=MOST_SUGGESTED)
    return SessionBriefing(
        fit_standing_instructions(sources, None, sizes, db),
        _recent_sessions(db, project_n, without),
        tuple(_known(one) for one in choose_topics(sources, db, project_n=project_n, agent=agent)),
        tuple(describe_instructions(db, suggested)),
    )


def _recent_sessions(
    db: Connection, project_n: int | None, without: Sequence[int]
) -> tuple[PastSession, ...]:
    """Return the last sessions of a project that a person worked in, newest first, one per goal."""
    by_goal: dict[str, PastSession] = {}
    for session in sessions.recent_sessions(db, project_n=project_n, limit=_SESSIONS_READ):
        n = sessions.get_session_number(db, session.id)
        if session.parent_id is None and n not in without:
            past = _from_episode(db, n, session) or _from_working_state(db, n, session)
            goal = " ".join(words.split(past.goal)) if past else ""
            if (
                past
                and goal not in by_goal
                and not is_proposal(past.goal)
                and not (_is_small_talk(db, n) or _is_outdated(db, n, past))
            ):
                by_goal[goal] = past
        if len(by_goal) == MOST_PAST:
            break
    return tuple(by_goal.values())


def _is_outdated(db: Connection, n: int, past: PastSession) -> bool:
    """Return whether the goal of a session is a statement that something newer replaced."""
    replaced = (link.older_text for link in replacements.links_of_session(db, n))
    return any(replacements.is_same_statement(past.goal, text) for text in replaced)


def _is_small_talk(db: Connection, n: int) -> bool:
    """Return whether nothing was done, decided or learned in a session."""
    session_messages = messages.messages_of_session(db, n, limit=_SHORT)
    if len(session_messages) == _SHORT:
        return False
    story = stories.collect_activity(session_messages)
    if story.asked_memory and not story.calls and len(story.requests) <= _FEW_REQUESTS:
        return True
    if story.calls or not goals.is_small_talk(text for text, _ in story.requests):
        return False
    return not fragments.has_knowledge_from(db, n)


def _from_episode(db: Connection, n: int, session: Session) -> PastSession | None:
    """Return a session by its episode; nothing if the episode quotes untrusted origins."""
    episode_n = distillations.find_episode(db, n)
    if episode_n is None or fragments.is_deleted(db, episode_n):
        return None
    episode = fragments.get(db, episode_n)
    goal = str(episode.payload.get("goal", ""))
    if not goal or episode.payload.get("titled") or episode.superseded_by:
        return None
    if episode.origin in ("peer", "repo", "web"):
        return None
    outcome: Outcome = episode.payload.get("outcome", "unknown")
    if outcome not in ("success", "failure", "partial"):
        outcome = "unknown"
    left_open = _left_open(episode) if outcome in ("failure", "partial") else ""
    ended = _last_words(db, n)
    return PastSession(episode.id, session.last_message_at, goal, outcome, left_open, ended)


def _left_open(episode: Fragment) -> str:
    """Return what an episode left open: the last unfinished of several tasks, or the reason."""
    tasks = episode.payload.get("tasks")
    undone = [
        str(task.get("goal", ""))
        for task in (tasks if isinstance(tasks, list) and len(tasks) > 1 else ())
        if isinstance(task, dict) and task.get("outcome") in ("failure", "partial")
    ]
    if undone:
        return undone[-1]
    return str(episode.payload.get("reason", "")) if episode.trust >= UNASKED_TRUST else ""


def _last_words(db: Connection, n: int) -> str:
    """Return what the assistant said last in a session, from its first telling sentence on.

    A question at its end is what was left open. Words of others that it repeats are not used.
    """
    first = messages.last_ordinal(db, n) - _LAST_MESSAGES
    for message in reversed(messages.messages_of_session(db, n, first=max(0, first))):
        text = "\n".join(part.text for part in message.parts if part.kind == "text").strip()
        if message.role == "user" and text:
            return ""
        if message.role == "assistant" and text:
            trust = TRUST[message_features.lowest_origin(message.parts, message.origin)]
            return _state_of_affairs(text) if trust >= UNASKED_TRUST else ""
    return ""


def _state_of_affairs(reply: str) -> str:
    """Return the first telling sentences of a reply, and the question at its end."""
    stripped = (_EXCLAMATION.sub("", one.text) for one in statements.split_statements(reply))
    telling = [one for one in stripped if one]
    shown, size = list[str](), 0
    for sentence in telling:
        if size > _FEW_CHARS and (sentence.endswith(":") or size + len(sentence) > _ENDED_CHARS):
            break
        shown.append(sentence)
        size += len(sentence)
    if telling and telling[-1].endswith("?") and telling[-1] not in shown:
        shown = [*shown[:1], telling[-1]]
    return " ".join(shown).rstrip(":")


_EXCLAMATION = compile_lazy(r"^\W*[\w'’]+(?:[\s,]+[\w'’]+){0,3}!\W*")
"""A short exclamation such as 'Perfect!' says nothing about how things stand."""

_FEW_CHARS, _ENDED_CHARS = 40, 140
"""Characters of the assistant's last words: 'Pushed.' alone says too little."""

_LAST_MESSAGES = 12
"""Among how many messages they are looked for."""


def _from_working_state(db: Connection, n: int, session: Session) -> PastSession | None:
    """Return a session without an episode by its state when its last turn ended.

    Its title is not used: it has no origin and can come from anyone.
    """
    state = sessions.find_session_state(db, n, "working")
    if not isinstance(state, dict) or not state.get("id"):
        return None
    goal = str(state.get("asked", ""))
    return PastSession(str(state["id"]), session.last_message_at, goal, "unknown") if goal else None


def _known(topic: KnownTopic) -> tuple[str, datetime, str]:
    """Return a topic with its date; what may be replaced has the newer text ahead."""
    fragment, newer = topic.fragment, topic.newer
    if newer is None:
        return fragment.id, fragment.created_at, topic.text
    text = sentences.one_line(newer.text, _NEWER_CHARS)
    at = clock.from_us(newer.at)
    older = f"perhaps in place of ({fragment.created_at:%Y-%m-%d}): {topic.text}"
    return fragment.id, at, f"{text} ({at:%Y-%m-%d}), {older}"


_MOST_NEW = 5
"""New instructions in one prompt; the next prompt gets more."""

_MOST_DECIDED, _DECISIONS_READ = 3, 50
"""Decisions in one prompt, so that half of its note is left for other hits; and among how many they
are looked for, since the session's own are dropped."""


@dataclass(frozen=True, slots=True)
class NewsItem:
    """An item for the prompt: number, id, current text and time."""

    n: int
    id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class News:
    """Changes that a session has not been given; `gone` has superseded items with their successor,
    if any."""

    new: tuple[NewsItem, ...] = ()
    decided: tuple[NewsItem, ...] = ()
    changed: tuple[NewsItem, ...] = ()
    gone: tuple[tuple[NewsItem, NewsItem | None], ...] = ()


def find_news(
    db: Connection,
    session: str,
    *,
    project_n: int,
    without: Sequence[str],
    since: datetime | None,
    agent: str = "",
) -> News:
    """Return the changes that a session has not been given yet.

    Instructions and decisions are new if they are from after `since`, and not from the sessions
    `without` or the files of `agent`.
    """
    stale = dialogue_state.find_outdated_injections(db, session)
    by_n = fragments.by_number(db, [*stale.changed, *stale.gone])
    newer_fragments = _find_newer_fragments(db, [by_n[n] for n in stale.gone if n in by_n])
    newer_statements = _find_newer_statements(db, stale.gone)
    new = tuple(_new_instructions(db, session, project_n, without, since)) if since else ()
    shown = {*newer_fragments, *(one.id for one in newer_statements.values())}
    decided = _new_decisions(db, session, project_n, without, since, shown) if since else []
    own = native_rows.notes_of_agent(db, [one.n for one in (*new, *decided)], agent)
    return News(
        tuple(one for one in new if one.n not in own),
        tuple(one for one in decided if one.n not in own),
        tuple(_news_item(n, by_n[n]) for n in stale.changed if _is_trusted(by_n.get(n))),
        tuple(
            (
                _news_item(n, by_n[n]),
                newer_fragments.get(by_n[n].superseded_by or "") or newer_statements.get(n),
            )
            for n in stale.gone
            if n in by_n
        ),
    )


def _find_newer_fragments(db: Connection, superseded: Iterable[Fragment]) -> dict[str, NewsItem]:
    ns = items.numbers_of(
        db, [fragment.superseded_by for fragment in superseded if fragment.superseded_by]
    )
    by_n = fragments.by_number(db, list(ns.values()))
    return {
        fragment.id: _news_item(n, fragment)
        for n, fragment in by_n.items()
        if _is_trusted(fragment)
    }


def _find_newer_statements(db: Connection, gone: Sequence[int]) -> dict[int, NewsItem]:
    """Return the newer statements that replaced items, by the items' numbers."""
    newer = replacements.successors(db, gone)
    ids = items.ids_of(db, [one.n for one in newer.values()])
    return {
        n: NewsItem(one.n, ids[one.n], one.text, clock.from_us(one.at))
        for n, one in newer.items()
        if one.is_whole and one.n in ids
    }


def _new_instructions(
    db: Connection, session: str, project_n: int, without: Sequence[str], since: datetime
) -> Iterable[NewsItem]:
    at = clock.to_us(since)
    if not instructions.has_any_since(db, at):
        return
    already_given = dialogue_state.find_injections(db, session).items
    fresh = [
        instruction
        for instruction in instructions.current_instructions(db, project_n)
        if instruction.created_at > at
        and instruction.item_n not in already_given
        and instruction.session_id not in without
    ][:_MOST_NEW]
    ids = items.ids_of(db, [instruction.item_n for instruction in fresh])
    for instruction in fresh:
        if instruction.fragment_origin in (None, "user", "assistant"):
            yield NewsItem(
                instruction.item_n,
                ids[instruction.item_n],
                instruction.text,
                clock.from_us(instruction.created_at),
            )


def _new_decisions(
    db: Connection,
    session: str,
    project_n: int,
    without: Sequence[str],
    since: datetime,
    successors: Container[str],
) -> list[NewsItem]:
    """Return new decisions, without `successors`, which are already_given with what they
    supersede."""
    ns = fragments.recent_decisions(db, clock.to_us(since), project_n=project_n)
    if not ns:
        return []
    already_given = dialogue_state.find_injections(db, session)
    ns = [n for n in ns if n not in already_given.items][:_DECISIONS_READ]
    by_n = fragments.by_number(db, ns)
    fresh = [
        _news_item(n, by_n[n])
        for n in ns
        if by_n[n].session_id not in without
        and by_n[n].id not in successors
        and message_features.word_fingerprint(by_n[n].content) not in already_given.digests
    ]
    return fresh[:_MOST_DECIDED]


def _is_trusted(fragment: Fragment | None) -> bool:
    return fragment is not None and fragment.trust >= UNASKED_TRUST


def _news_item(n: int, fragment: Fragment) -> NewsItem:
    return NewsItem(n, fragment.id, fragment.content, fragment.updated_at)

"""Show one item: its content, tree, links, provenance, history, and what happened around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from math import inf
from typing import Literal

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.lazy_dataclass import dataclass
from lore.recall import time_spans
from lore.recall.outdated import find_successor
from lore.records import (
    TRUST,
    Distillation,
    Edge,
    Fragment,
    FragmentEvent,
    Message,
    Outline,
    Provenance,
    Reading,
    RememberResult,
    Storing,
    TimelineEntry,
    Title,
)
from lore.relevance import decayed_boost, relevance, strength
from lore.store import (
    candidate_rows,
    consolidation,
    distillations,
    dump,
    fragments,
    graph,
    history,
    items,
    messages,
    sessions,
)
from lore.store.candidate_rows import NearbyQuery
from lore.store.database import Connection
from lore.text import message_features, sentences, tokens

Direction = Literal["children", "parent", "associations"]


def read(db: Connection, id_: str) -> Reading:
    """Return an item with its session, parent, children and links."""
    item = items.resolve(db, id_)
    session = sessions.get_session(db, item.session_n) if item.session_n else None
    session_title = session.title if session else ""
    if item.type == "fragment":
        fragment = fragments.get(db, item.n)
        parent_n = graph.find_parent(db, item.n)
        return Reading(
            item.id, item.type, fragment.content,
            title=fragment.summary or sentences.summary(fragment.content),
            created_at=fragment.created_at, tokens=item.tokens, origin=fragment.origin,
            fragment=fragment, session=session,
            parent=titles(db, [parent_n])[0] if parent_n is not None else None,
            children=tuple(titles(db, graph.children(db, item.n))),
            edges=tuple(_visible_links(db, item.n)),
            deleted=fragments.is_deleted(db, item.n),
            replaced=find_successor(db, item.n),
        )  # fmt: skip
    if item.type == "message":
        message = messages.get_message(db, item.n)
        text = message_features.readable_text(message.parts)
        return Reading(
            item.id, item.type, text, title=session_title or sentences.summary(text),
            created_at=message.created_at, tokens=item.tokens, origin=message.origin,
            message=message, session=session, replaced=find_successor(db, item.n),
        )  # fmt: skip
    distillation = distillations.get_distillations(db, [item.n])[item.n]
    text = distillation.text
    return Reading(
        item.id, item.type, text, title=session_title or sentences.summary(text),
        created_at=distillation.created_at, tokens=item.tokens, origin="assistant",
        distillation=distillation, session=session,
    )  # fmt: skip


def titles(db: Connection, ns: Sequence[int]) -> list[Title]:
    """Return the titles of fragments, in the order of their numbers."""
    by_n = fragments.by_number(db, ns)
    deleted = fragments.deletion_times(db, ns)
    return [
        Title(
            id=by_n[n].id,
            title=by_n[n].summary,
            kind=by_n[n].kind,
            depth=by_n[n].depth,
            tokens=tokens.count(by_n[n].content),
            children=len(graph.children(db, n)),
            deleted=n in deleted,
        )
        for n in ns
        if n in by_n
    ]


def remember_result(
    db: Connection, id_: str, outcome: Storing, resembles: Sequence[str]
) -> RememberResult:
    """Return the result of storing a fragment, by titles."""
    n = items.resolve(db, id_, type="fragment").n
    parent = graph.find_parent(db, n)
    return RememberResult(
        id_,
        outcome,
        titles(db, [n])[0],
        titles(db, [parent])[0] if parent is not None else None,
        tuple(titles(db, dump.known_numbers(db, resembles))),
    )


def outline(db: Connection, n: int, levels: int) -> Outline:
    """Return the tree below a fragment by title."""
    below = graph.children(db, n) if levels > 0 else []
    return Outline(titles(db, [n])[0], tuple(outline(db, child, levels - 1) for child in below))


def traverse(db: Connection, id_: str, direction: Direction) -> list[Title]:
    """Return the fragments one step away, without deleted ones."""
    n = items.resolve(db, id_, type="fragment").n
    if direction == "children":
        return titles(db, graph.children(db, n))
    if direction == "parent":
        parent = graph.find_parent(db, n)
        if parent is None:
            msg = "This fragment is a root: it has no parent."
            raise NotFound(msg)
        (above,) = titles(db, [parent])
        if above.deleted:
            msg = "The parent of this fragment was deleted."
            raise NotFound(msg, hint=f"'lore undo {above.id}' brings it back.")
        return [above]
    others = {_other_end(db, edge, n) for edge in _visible_links(db, n)}
    return titles(db, sorted(others))


def _visible_links(db: Connection, n: int) -> list[Edge]:
    """Return the edges of a fragment to others that are not deleted."""
    links = [e for e in graph.edges_of_fragment(db, n) if e.kind != "hierarchical"]
    others = [_other_end(db, edge, n) for edge in links]
    deleted = fragments.deletion_times(db, others)
    return [edge for edge, other in zip(links, others, strict=True) if other not in deleted]


def _other_end(db: Connection, edge: Edge, n: int) -> int:
    ends = (items.resolve(db, edge.source).n, items.resolve(db, edge.target).n)
    return ends[1] if ends[0] == n else ends[0]


ALLOWED_BY_TRUST = {
    3: "trust 3: put into prompts unasked, and only a person can change or replace it",
    2: "trust 2: put into prompts unasked; a person can change or replace it",
    1: "trust 1: found by asking only, never put into a prompt unasked",
    0: "trust 0: found by asking only, and replaces nothing that has more trust",
}
"""What each level of trust allows, in the words of 'lore why'."""


def _source_messages(db: Connection, distillation: Distillation) -> tuple[Message, ...]:
    session_n = items.resolve(db, distillation.id).session_n
    ends = [distillation.from_message, distillation.to_message]
    by_n = messages.get_messages(db, dump.known_numbers(db, ends))
    if session_n is None or not by_n:
        return ()
    first = min(message.ordinal for message in by_n.values())
    last = max(message.ordinal for message in by_n.values())
    return tuple(messages.messages_of_session(db, session_n, first=first, limit=last - first + 1))


def why(db: Connection, id_: str, *, now: datetime) -> Provenance:
    """Return where an item comes from and the numbers behind it."""
    reading = read(db, id_)
    n = items.resolve(db, reading.id).n
    sources: tuple[Message, ...] = ()
    numbers: dict[str, float] = {}
    superseded_by: str | None = None
    supersedes: tuple[str, ...] = ()
    version_count = 0
    if reading.fragment:
        fragment = reading.fragment
        source_ns = dump.known_numbers(db, fragment.source_messages)
        sources = tuple(messages.get_messages(db, source_ns).values())
        superseded_by = fragment.superseded_by
        supersedes = tuple(
            e.target for e in reading.edges if e.kind == "supersedes" and e.source == fragment.id
        )
        version_count = len(fragments.get_versions(db, n))
        numbers = strength_numbers(db, n, fragment, now=now)
    elif reading.message:
        sources = (reading.message,)
    elif reading.distillation:
        sources = _source_messages(db, reading.distillation)
    origins = {m.id: message_features.lowest_origin(m.parts, m.origin) for m in sources}
    lowest = min([reading.origin, *origins.values()], key=TRUST.__getitem__)
    trust = reading.fragment.trust if reading.fragment else TRUST[lowest]
    return Provenance(
        reading=reading,
        sources=sources,
        origins=origins,
        versions=version_count,
        numbers=numbers,
        superseded_by=superseded_by,
        supersedes=supersedes,
        times_recalled=candidate_rows.count_recalls(db, reading.id),
        allowed=ALLOWED_BY_TRUST[trust],
    )


def strength_numbers(
    db: Connection, n: int, fragment: Fragment, *, now: datetime
) -> dict[str, float]:
    """Return the numbers behind the present relevance of a fragment."""
    days = max(0.0, (now - fragment.last_reinforced).total_seconds() / 86_400)
    used_at = fragment.last_accessed
    used_days = (now - used_at).total_seconds() / 86_400 if used_at else inf
    boost, boosted_at, doubt = fragments.boost_and_doubt(db, n)
    boosted_days = max(0.0, (clock.to_us(now) - boosted_at) / 8.64e10)
    return {
        "importance": fragment.importance,
        "confidence": fragment.confidence,
        "trust": fragment.trust,
        "readings": fragment.access_count,
        "strength": strength(fragment.access_count),
        "decay_per_day": fragment.decay_rate,
        "days_since_reinforced": days,
        "boost": decayed_boost(boost, fragment.importance, boosted_days),
        "doubt": doubt,
        "relevance": relevance(
            fragment.importance, fragment.access_count, days, boost, boosted_days, used_days
        ),
    }


_ACTIONS = {"delete": "deleted", "link": "linked", "supersede": "superseded"}
_STEPS = {"hidden": "pruned", "superseded": "superseded", "depth": "moved", "added": "derived"}


def list_history(db: Connection, id_: str) -> list[FragmentEvent]:
    """Return what events to a fragment, oldest first."""
    reading = read(db, id_)
    if reading.fragment is None:
        msg = f"'{id_}' is a {reading.type}; only fragments have a history."
        raise InvalidInput(msg, hint="'lore why ID' shows where it comes from.")
    n = items.resolve(db, reading.id).n
    events = [
        *_source_events(db, reading.fragment),
        FragmentEvent(reading.created_at, "learned", f"from {reading.origin}"),
        *_version_events(db, n),
        *_action_events(db, n),
        *_link_events(db, reading),
        *_recall_events(db, reading.id),
        *_access_events(reading.fragment),
    ]
    return sorted(events, key=lambda event: event.at)


def _source_events(db: Connection, fragment: Fragment) -> Iterator[FragmentEvent]:
    numbers = dump.known_numbers(db, fragment.source_messages)
    for message in messages.get_messages(db, numbers).values():
        text = sentences.one_line(
            message_features.searchable_text(message.parts), sentences.SUMMARY_CHARS
        )
        yield FragmentEvent(message.created_at, "said", f"{message.role}: {text}")


def _version_events(db: Connection, n: int) -> Iterator[FragmentEvent]:
    for version in fragments.get_versions(db, n):
        why = f" ({version.reason})" if version.reason else ""
        yield FragmentEvent(version.changed_at, "changed", f"it said: {version.summary}{why}")


def _action_events(db: Connection, n: int) -> Iterator[FragmentEvent]:
    for action in history.actions_of_fragment(db, n):
        if action.verb in _ACTIONS:
            taken_back = ", taken back since" if action.undone else ""
            yield FragmentEvent(action.at, _ACTIONS[action.verb], f"by hand{taken_back}")
    for at, verb in consolidation.steps_of_fragment(db, n):
        if verb in _STEPS:
            yield FragmentEvent(at, _STEPS[verb], "by a cycle")


def _link_events(db: Connection, reading: Reading) -> Iterator[FragmentEvent]:
    others = [e.target if e.source == reading.id else e.source for e in reading.edges]
    numbers = {id_: items.resolve(db, id_).n for id_ in others}
    by_n = fragments.by_number(db, list(numbers.values()))
    for edge, other in zip(reading.edges, others, strict=True):
        arrow = "→" if edge.source == reading.id else "←"
        title = by_n[numbers[other]].summary if numbers[other] in by_n else other
        yield FragmentEvent(edge.created_at, edge.kind, f"{arrow} {title}")


def _recall_events(db: Connection, id_: str) -> Iterator[FragmentEvent]:
    days: dict[date, list[datetime]] = {}
    for at in candidate_rows.recall_times(db, id_):
        days.setdefault(at.date(), []).append(at)
    for times in days.values():
        frequency = "once that day" if len(times) == 1 else f"{len(times)} times that day"
        yield FragmentEvent(max(times), "recalled", frequency)


def _access_events(fragment: Fragment) -> Iterator[FragmentEvent]:
    if fragment.last_accessed is not None:
        times = fragment.access_count
        frequency = "once so far" if times == 1 else f"{times} times so far"
        yield FragmentEvent(fragment.last_accessed, "read", frequency)


_TEXT_CHARS = 2_000
"""Most characters of each entry; `read` returns the rest."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A point in time, and the item there if one was named."""

    at: datetime
    n: int | None = None
    session_n: int | None = None
    ordinal: int | None = None


def list_around(
    db: Connection, anchor: str, *, before: int, after: int, project_n: int | None, now: datetime
) -> list[TimelineEntry]:
    """Return what happened around an item or a point in time, oldest first.

    Around a message only its session counts; around a point in time, all sessions.
    """
    point = _resolve_anchor(db, anchor, now)
    earlier, later = (
        _nearest_entries(
            db,
            NearbyQuery(
                clock.to_us(point.at),
                is_later,
                limit + 1,
                point.session_n,
                point.ordinal,
                None if point.session_n is not None else project_n,
            ),
            point.n,
        )[:limit]
        for is_later, limit in ((False, before), (True, after))
    )
    anchor_entries = (
        [replace(entry, is_anchor=True) for entry in _load_entries(db, [point.n])]
        if point.n
        else []
    )
    return [*reversed(earlier), *anchor_entries, *later]


def _resolve_anchor(db: Connection, anchor: str, now: datetime) -> _Anchor:
    moment = _parse_iso_date(anchor)
    if moment is None and not items.looks_like_id(anchor):
        is_now = anchor.strip().lower() == "now"
        moment = now if is_now else time_spans.since(anchor, now)
    if moment is not None:
        return _Anchor(moment)
    item = items.resolve(db, anchor)
    at = clock.from_us(item.created_at)
    if item.type != "message":
        return _Anchor(at, item.n if item.type == "fragment" else None, item.session_n)
    return _Anchor(at, item.n, item.session_n, messages.get_message(db, item.n).ordinal)


def _parse_iso_date(text: str) -> datetime | None:
    """Return the time of an ISO date; None for another text, such as an id of digits."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _nearest_entries(db: Connection, where: NearbyQuery, anchor: int | None) -> list[TimelineEntry]:
    """Return messages and fragments on entry side of a point in time, nearest first."""
    ns = [*candidate_rows.nearest_messages(db, where), *candidate_rows.nearest_fragments(db, where)]
    entries = _load_entries(db, [n for n in ns if n != anchor])
    return sorted(entries, key=lambda entry: (entry.at, entry.id), reverse=not where.later)


def _load_entries(db: Connection, ns: Sequence[int]) -> list[TimelineEntry]:
    entries = [
        *map(_message_entry, messages.get_messages(db, ns).values()),
        *map(_fragment_entry, fragments.by_number(db, ns).values()),
    ]
    titles = {
        id_: sessions.get_session(db, sessions.get_session_number(db, id_)).title
        for id_ in {entry.session_id for entry in entries if entry.session_id}
    }
    return [replace(entry, session=titles.get(entry.session_id, "")) for entry in entries]


def _message_entry(message: Message) -> TimelineEntry:
    spoken_parts = [
        p for p in message.parts if message_features.is_dialogue_part(p) and p.kind != "reasoning"
    ]
    return TimelineEntry(
        id=message.id,
        type="message",
        at=message.created_at,
        what=message.speaker or message.role,
        text=message_features.readable_text(spoken_parts, brief=True)[:_TEXT_CHARS],
        origin=message_features.lowest_origin(message.parts, message.origin),
        session_id=message.session_id,
    )


def _fragment_entry(fragment: Fragment) -> TimelineEntry:
    return TimelineEntry(
        id=fragment.id,
        type="fragment",
        at=fragment.created_at,
        what=fragment.kind,
        text=fragment.summary,
        origin=fragment.origin,
        session_id=fragment.session_id or "",
    )

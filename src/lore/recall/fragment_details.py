"""The details of one fragment: versions with diffs, quoted sources, forgetting curve, links."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from math import inf

from lore import clock
from lore.recall import item_details
from lore.records import (
    CurvePoint,
    DiffPart,
    Fragment,
    LinkedFragment,
    Message,
    RelevanceCurve,
    Session,
    SourceMessage,
    VersionChange,
)
from lore.relevance import VISIBLE, relevance
from lore.store import candidate_rows, dump, fragments, items, messages, pages, sessions
from lore.store.database import Connection
from lore.text import message_features, sentences, words

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_COMPARED = 1_500
"""Words, and then lines, that are compared one by one: comparing takes the square of them."""


def compare_texts(former: str, current: str) -> tuple[DiffPart, ...]:
    """Return what was added and removed between two texts, by words, or by lines if they are long.

    The parts that are not `removed` make the current text, those not `added` the former one.
    """
    for split in (_WORD.findall, lambda text: text.splitlines(keepends=True)):
        old, new = split(former), split(current)
        if max(len(old), len(new)) <= _MAX_COMPARED:
            return tuple(_diff_parts(old, new))
    return (DiffPart("removed", former), DiffPart("added", current))


def _diff_parts(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffPart]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield DiffPart("same", "".join(old[a:b]))
            continue
        if b > a:
            yield DiffPart("removed", "".join(old[a:b]))
        if d > c:
            yield DiffPart("added", "".join(new[c:d]))


def list_versions(db: Connection, n: int, *, before: int, limit: int) -> list[VersionChange]:
    """Return the versions of a fragment below a number, newest first.

    A former version is stored with the time and the reason of the change that ended it.
    """
    current, former = fragments.get(db, n), fragments.get_versions(db, n)
    texts = {one.version: (one.content, one.summary) for one in former}
    texts[current.version] = (current.content, current.summary)
    since = {one.version + 1: (one.changed_at, one.reason) for one in former}
    chosen = [version for version in sorted(texts, reverse=True) if version < before][:limit]
    changes = []
    for version in chosen:
        at, reason = since.get(version, (current.created_at, ""))
        content, summary = texts[version]
        earlier = texts.get(version - 1)
        changes.append(
            VersionChange(
                version,
                content,
                summary,
                at,
                reason,
                is_current=version == current.version,
                diff=compare_texts(earlier[0], content) if earlier else (),
            )
        )
    return changes


_WINDOW_CHARS = 2_000
"""Text that is shown on each side of a quote."""

_RESEMBLANCE = 0.3
"""Share of a fragment's words that a passage must have to be its quote."""

_SEARCHED_CHARS = 60_000
_MOST_SENTENCES = 4


def find_quote(text: str, content: str) -> tuple[int, int]:
    """Return the span of a text that says what a fragment says; empty if none resembles it."""
    whole = text.find(content)
    if whole >= 0 and content:
        return whole, whole + len(content)
    wanted = frozenset(words.split(content))
    spans = list(sentences.sentence_spans(text[:_SEARCHED_CHARS]))
    if not wanted or not spans:
        return 0, 0
    inside = [frozenset(words.split(text[start:end])) & wanted for start, end in spans]
    best, best_score = (0, 0), _RESEMBLANCE
    for first in range(len(spans)):
        covered: frozenset[str] = frozenset()
        for last in range(first, min(len(spans), first + _MOST_SENTENCES)):
            covered |= inside[last]
            # A longer passage must add something to be better than a shorter one.
            score = len(covered) / len(wanted) - 0.05 * (last - first)
            if inside[first] and inside[last] and score > best_score:
                best, best_score = (spans[first][0], spans[last][1]), score
    start, end = best
    return start, start + len(text[start:end].rstrip())


def list_sources(
    db: Connection, fragment: Fragment, *, after: int, limit: int
) -> list[tuple[tuple[int], SourceMessage]]:
    """Return the messages that a fragment was derived from, in order, each with its number."""
    ns = sorted(n for n in dump.known_numbers(db, fragment.source_messages) if n > after)[:limit]
    by_n = messages.get_messages(db, ns)
    session_ns = {
        one.session_id: sessions.get_session_number(db, one.session_id) for one in by_n.values()
    }
    by_session = sessions.get_sessions(db, list(session_ns.values()))
    return [
        ((n,), _quoted_source(by_n[n], fragment, by_session[session_ns[by_n[n].session_id]]))
        for n in ns
    ]


def _quoted_source(message: Message, fragment: Fragment, session: Session) -> SourceMessage:
    text = message_features.readable_text(message.parts)
    start, end = find_quote(text, fragment.content)
    first, last = max(0, start - _WINDOW_CHARS), min(len(text), end + _WINDOW_CHARS)
    return SourceMessage(
        id=message.id,
        session_id=message.session_id,
        session=session.title,
        agent=session.agent,
        project_id=session.project_id,
        ordinal=message.ordinal,
        role=message.role,
        speaker=message.speaker,
        origin=message_features.lowest_origin(message.parts, message.origin),
        at=message.created_at,
        before=text[first:start],
        quote=text[start:end],
        after=text[end:last],
        is_cut=first > 0 or last < len(text),
    )


FORECAST = timedelta(days=180)
_PAST_POINTS, _FORECAST_POINTS = 60, 90


def forgetting_curve(db: Connection, id_: str, *, now: datetime) -> RelevanceCurve:
    """Return the relevance of a fragment over time: as it was, and as it will be if unread."""
    n = items.resolve(db, id_, type="fragment").n
    fragment = fragments.get(db, n)
    boost, boosted_at, _ = fragments.boost_and_doubt(db, n)
    boosted = clock.from_us(boosted_at)

    def value(at: datetime) -> float:
        since_boost = _days(boosted, at) if boost and at >= boosted else 0.0
        return relevance(
            fragment.importance, fragment.access_count, _days(fragment.last_reinforced, at),
            boost if at >= boosted else 0.0, since_boost, _days_since_use(fragment, at),
        )  # fmt: skip

    points = [
        CurvePoint(
            at, relevance(fragment.importance, 0, _days(fragment.created_at, at)), "estimated"
        )
        for at in _steps(fragment.created_at, fragment.last_reinforced, _PAST_POINTS)
    ]
    reinforced = min(fragment.last_reinforced, now)
    points += [CurvePoint(at, value(at), "known") for at in _steps(reinforced, now, _PAST_POINTS)]
    ahead = _steps(now, now + FORECAST, _FORECAST_POINTS)
    forecast = [CurvePoint(at, value(at), "forecast") for at in ahead]
    hidden = next((one.at for one in forecast if one.relevance < VISIBLE), None)
    return RelevanceCurve(
        id=fragment.id,
        now=now,
        relevance=value(now),
        visible=VISIBLE,
        hidden_at=hidden,
        points=(*points, CurvePoint(now, value(now), "known"), *forecast),
        numbers=item_details.strength_numbers(db, n, fragment, now=now),
        times_recalled=candidate_rows.count_recalls(db, fragment.id),
        allowed=item_details.ALLOWED_BY_TRUST[fragment.trust],
    )


def _days(since: datetime, at: datetime) -> float:
    return max(0.0, (at - since).total_seconds() / 86_400)


def _days_since_use(fragment: Fragment, at: datetime) -> float:
    used_at = fragment.last_accessed
    return inf if used_at is None or used_at > at else _days(used_at, at)


def _steps(start: datetime, end: datetime, most: int) -> list[datetime]:
    """Return times from `start` until before `end`, at most one an hour."""
    count = min(most, int((end - start).total_seconds() // 3_600))
    return [start + (end - start) * place / count for place in range(count)]


def list_links(
    db: Connection, n: int, after: Sequence[int | str], *, limit: int
) -> list[tuple[tuple[int | str, ...], LinkedFragment]]:
    """Return the edges of a fragment with what they lead to, each with its key."""
    rows = pages.edges(db, after, fragment_n=n, kind="", limit=limit)
    others = [key[1] if key[0] == n else key[0] for key, _ in rows]
    ns = list(dict.fromkeys(others))
    titles = dict(zip(ns, item_details.titles(db, ns), strict=True))
    return [
        (
            tuple(key),
            LinkedFragment(
                "out" if key[0] == n else "in", edge.kind, edge.weight, edge.note,
                edge.created_at, titles[other],
            ),
        )
        for (key, edge), other in zip(rows, others, strict=True)
    ]  # fmt: skip

"""What holds now, as every reader of the memory sees it: which items are outdated, and by what."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from lore import clock
from lore.recall.features import EXCERPT_TOKENS
from lore.recall.hit_selection import Limits
from lore.records import UNASKED_TRUST, Hit, Replaced
from lore.store import fragments, items, messages, replacements, sessions
from lore.store import standing_instructions as instructions
from lore.store.database import Connection
from lore.text import message_features, sentences, tokens

WHOLE, IN_PART = 1.0, 0.5
"""How outdated an item is: all of it, or a sentence or some of the cases that it covers."""

_SHOWN_CHARS = 200


def outdated_shares(
    db: Connection, ns: Sequence[int], session_ns: Sequence[int]
) -> dict[int, float]:
    """Return how outdated items are, by number; those that hold are left out.

    A newer statement or fragment replaced them, or the person took them back.
    """
    taken_back = instructions.withdrawn_items(db, ns)
    if session_ns:
        taken_back |= fragments.outdated_messages(db, ns, session_ns)
    shares = {
        n: WHOLE if one.is_whole else IN_PART
        for n, one in replacements.extents(db, ns).items()
        if one.relation != "may_replace"
    }
    return shares | dict.fromkeys(taken_back, WHOLE)


def find_replaced(db: Connection, hit: Hit) -> Replaced | None:
    """Return what replaced the item of a hit, or may have: a statement or a fragment."""
    n = items.find_number(db, hit.id)
    replaced = find_successor(db, n) if n is not None else None
    if replaced is None and hit.is_outdated:
        return find_newer_fragment(db, hit)
    return replaced


def find_successor(db: Connection, n: int) -> Replaced | None:
    """Return the statement that replaced an item, or may have."""
    return find_successors(db, [n]).get(n)


def find_successors(db: Connection, ns: Sequence[int]) -> dict[int, Replaced]:
    """Return the statements that replaced items, or may have, by the numbers of the items."""
    successors = replacements.successors(db, ns)
    ids = items.ids_of(db, [one.n for one in successors.values()])
    return {
        n: Replaced(
            one.relation,
            ids.get(one.n, ""),
            sentences.one_line(one.text, _SHOWN_CHARS),
            clock.from_us(one.at),
            sentences.one_line(one.older_text, _SHOWN_CHARS),
        )
        for n, one in successors.items()
    }


def find_newer_fragment(db: Connection, hit: Hit, *, trusted_only: bool = False) -> Replaced | None:
    """Return the fragment that superseded what was derived from the message of a hit."""
    newer = fragments.find_successor(db, hit.id)
    if newer is None and hit.question_id:
        newer = fragments.find_successor(db, hit.question_id)
    if newer is None or newer.project_id not in (None, "", hit.project_id):
        return None
    if hit.project_id and not newer.project_id and newer.session_id:
        return None  # a session without a project says nothing about one
    if trusted_only and newer.trust < UNASKED_TRUST:
        return None
    text = sentences.one_line(newer.content, _SHOWN_CHARS)
    return Replaced("replaces", newer.id, text, newer.created_at)


def drop_outdated(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return those of the items that are not replaced as a whole."""
    gone = replacements.extents(db, ns)
    return {n for n in ns if n not in gone or not gone[n].is_whole}


def put_successors_first(
    db: Connection, hits: Sequence[Hit], limits: Limits, *, adds: bool
) -> tuple[Hit, ...]:
    """Return hits with what replaced an outdated one before it; the last ones make room for it.

    What the question did not find is added only if `adds`, and if its origin is allowed. What only
    may have replaced a hit is added where there is room.
    """
    ordered: dict[str, Hit] = {}
    doubtful: list[str] = []
    by_id = {hit.id: hit for hit in hits}
    for hit in hits:
        newer = hit.replaced.by_id if hit.replaced else ""
        if newer and newer not in ordered:
            successor = by_id.get(newer)
            if successor is None and adds:
                successor = _successor_hit(db, newer, hit, trusted_only=limits.trusted_only)
                doubtful += [newer] if hit.replaced and hit.replaced.how == "may_replace" else []
            if successor is not None:
                score = max(successor.score, hit.score)
                ordered[newer] = replace(successor, score=score)
        ordered.setdefault(hit.id, hit)
    while doubtful and _exceeds(ordered.values(), limits):
        ordered.pop(doubtful.pop(), None)
    fitting = list(ordered.values())[: limits.hits]
    while len(fitting) > limits.fewest and sum(hit.tokens for hit in fitting) > limits.tokens:
        fitting.pop()
    return tuple(fitting)


def _exceeds(hits: Collection[Hit], limits: Limits) -> bool:
    return len(hits) > limits.hits or sum(hit.tokens for hit in hits) > limits.tokens


def _successor_hit(db: Connection, id_: str, older: Hit, *, trusted_only: bool) -> Hit | None:
    """Return the hit of an item that the question did not find itself."""
    n = items.find_number(db, id_)
    if n is None or (trusted_only and not messages.trusted_items(db, [n])):
        return None
    why = f"replaces {older.id}"
    fragment = fragments.by_number(db, [n]).get(n)
    if fragment is not None:
        text = tokens.clip(fragment.content, EXCERPT_TOKENS)
        return Hit(
            id_, "fragment", text, fragment.summary, older.score, why, fragment.created_at,
            tokens.count(text), kind=fragment.kind, depth=fragment.depth,
            session_id=fragment.session_id or "", project_id=fragment.project_id or "",
            origin=fragment.origin, sources=fragment.source_messages,
        )  # fmt: skip
    message = messages.get_messages(db, [n]).get(n)
    if message is None:
        return None
    own_words = message_features.spoken_text(message.parts)
    text = tokens.clip(
        own_words or message_features.readable_text(message.parts, brief=True), EXCERPT_TOKENS
    )
    title = sessions.titles_by_id(db, {message.session_id}).get(message.session_id, "")
    return Hit(
        id_, "message", text, title, older.score, why, message.created_at, tokens.count(text),
        role=message.role, session_id=message.session_id, project_id=older.project_id,
        origin=message_features.lowest_origin(message.parts, message.origin),
        replaced=find_successor(db, n),
    )  # fmt: skip

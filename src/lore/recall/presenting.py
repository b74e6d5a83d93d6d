"""Presenting: hits as text, without doubles, dated and placed, within a token budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lore.recall import choosing, log_lines, replies
from lore.recall.choosing import Chosen, Limits
from lore.recall.features import Floats, within
from lore.recall.log_lines import EXCERPT_TOKENS
from lore.recall.question import Question
from lore.records import (
    UNASKED_TRUST,
    Distillation,
    Fragment,
    Hit,
    Message,
    Project,
    Session,
    Signal,
)
from lore.store import distillations, edges, fragments, items, messages, sessions
from lore.store.db import Connection
from lore.text import parts, tokens

if TYPE_CHECKING:
    from lore.recall.ranking import Ranked


def present(
    db: Connection,
    question: Question,
    ranked: Ranked,
    order: Sequence[int] | np.ndarray,
    *,
    limits: Limits,
    explain: bool,
) -> Chosen:
    """Turn the best candidates into hits until a limit is reached.

    What is left of the budget then goes to answers of those that ask, the best first.
    """
    is_log = ranked.pool.rows.types == items.type_number("distillation")
    places = [int(place) for place in order]
    shown_by = partial(
        _hits, db, question, ranked, explain=explain, trusted_only=limits.trusted_only
    )
    logs = {place for place in places if is_log[place]}
    chosen = choosing.choose(places, logs, shown_by, limits)
    left = limits.tokens - sum(hit.tokens for hit in chosen.hits)
    shown = {hit.id for hit in chosen.hits}
    answered = []
    for hit in chosen.hits:
        found = replies.with_answer(db, hit, list(question.terms), most_tokens=left, shown=shown)
        left -= found.tokens - hit.tokens
        answered.append(found)
    return replace(chosen, hits=tuple(answered))


def _hits(
    db: Connection,
    question: Question,
    ranked: Ranked,
    places: Sequence[int],
    shown: Collection[str],
    *,
    explain: bool,
    trusted_only: bool,
) -> Iterator[tuple[int, Hit]]:
    """Read the items behind some candidates and make hits of them, one after the other.

    `shown` are the messages that the hits so far show or tell.
    """
    rows = ranked.pool.rows
    ns = [int(rows.ns[place]) for place in places]
    found: dict[int, Message | Distillation | Fragment] = {
        **messages.by_number(db, ns),
        **distillations.by_number(db, ns),
        **fragments.by_number(db, ns),
    }
    session_ns = {int(rows.sessions[place]) for place in places} - {0}
    shelf = _Shelf(
        db, sessions.by_number(db, sorted(session_ns)), sessions.projects(db), trusted_only
    )
    lines = _told_lines(db, [n for n in ns if isinstance(found.get(n), Distillation)])
    for place in places:
        n = int(rows.ns[place])
        if n not in found:
            continue
        hit = _hit(
            shelf,
            found[n],
            n,
            int(rows.sessions[place]),
            question,
            score=float(ranked.scores[place]),
            why=_why(question, ranked, place),
        )
        if n in lines:
            hit = _fitting_lines(hit, lines[n], question, ranked.pool.rarity, shown)
        yield place, replace(hit, signals=signals_of(ranked, place)) if explain else hit


def _told_lines(db: Connection, ns: Sequence[int]) -> dict[int, list[tuple[str, ...]]]:
    """Return for each line of distillations the ids of the messages that it tells."""
    told = distillations.told_by(db, ns)
    ids = items.ids_of(db, sorted({m for lines in told.values() for line in lines for m in line}))
    return {n: [tuple(ids[m] for m in line) for line in lines] for n, lines in told.items()}


def _fitting_lines(
    hit: Hit,
    told: Sequence[Sequence[str]],
    question: Question,
    rarity: Floats,
    shown: Collection[str],
) -> Hit:
    """Show a distillation by its lines that fit and tell something new."""
    chosen = log_lines.choose(
        hit.text, told, question, rarity, most_tokens=EXCERPT_TOKENS, known=shown
    )
    size = tokens.count(chosen.text)
    return replace(hit, text=chosen.text, tokens=size, sources=chosen.sources)


@dataclass(frozen=True, slots=True)
class _Shelf:
    db: Connection
    sessions: dict[int, Session]
    projects: dict[int, Project]
    trusted_only: bool

    def text_of(self, message: Message) -> str:
        """Return a message to read; what nobody said is found by nothing, and is no answer."""
        return parts.readable(part for part in message.parts if parts.is_spoken(part))

    def voice_of(self, message: Message) -> str:
        """Return who says a message, by name if anybody may say it."""
        return message.role if self.trusted_only else message.speaker or message.role

    def above(self, n: int) -> list[Fragment]:
        """Return the fragments above one, as far as they may be named."""
        found = fragments.by_number(self.db, edges.ancestors(self.db, n)).values()
        return [f for f in found if not self.trusted_only or f.trust >= UNASKED_TRUST]

    def project_name(self, project_id: str | None) -> str:
        """Return the name of a project."""
        return next((p.name for p in self.projects.values() if p.id == project_id), "")

    def place_of(self, session_n: int) -> tuple[str, str, str]:
        """Return the title, breadcrumb and project of a session."""
        session = self.sessions.get(session_n)
        if session is None:
            return "", "", ""
        project = self.project_name(session.project_id)
        if self.trusted_only:  # the other names have no origin: anybody may have given them
            return "", project, session.project_id or ""
        names = (project, session.agent, session.branch)
        trail = " › ".join(name for name in names if name)
        title = session.title or f"session of {session.started_at:%Y-%m-%d}"
        return title, trail, session.project_id or ""


def _hit(
    shelf: _Shelf,
    record: Message | Distillation | Fragment,
    n: int,
    session_n: int,
    question: Question,
    *,
    score: float,
    why: str,
) -> Hit:
    title, trail, project_id = shelf.place_of(session_n)
    terms = list(question.terms)
    if isinstance(record, Message):
        text = tokens.clip_around(shelf.text_of(record), EXCERPT_TOKENS, terms)
        return Hit(
            record.id, "message", text, title, score, why, record.created_at, tokens.count(text),
            trail, role=shelf.voice_of(record), session_id=record.session_id,
            project_id=project_id, origin=record.origin,
        )  # fmt: skip
    if isinstance(record, Distillation):
        return Hit(
            record.id, "distillation", record.text, title, score, why, record.created_at,
            record.tokens, trail, role="log", session_id=record.session_id,
            project_id=project_id, origin="assistant",
        )  # fmt: skip
    crumbs = [shelf.project_name(record.project_id), *(f.summary for f in shelf.above(n))]
    text = tokens.clip_around(record.content, EXCERPT_TOKENS, terms)
    return Hit(
        record.id, "fragment", text, record.summary, score, why, record.created_at,
        tokens.count(text), " › ".join(crumb for crumb in crumbs if crumb),
        kind=record.kind, depth=record.depth, session_id=record.session_id or "",
        project_id=record.project_id or "", origin=record.origin,
        sources=record.source_messages,
    )  # fmt: skip


def _why(question: Question, ranked: Ranked, place: int) -> str:
    """Say in a few words what speaks for a hit."""
    pool = ranked.pool
    reasons = []
    keyword_rank = pool.keyword_rank(place)
    if keyword_rank < 1e8:
        reasons.append(f"keywords #{int(keyword_rank) + 1}")
    if pool.cosine_rank[place] < 1e8:
        reasons.append(f"meaning #{int(pool.cosine_rank[place]) + 1} ({pool.cosine[place]:.2f})")
    covered = ranked.features.get("covered")
    if covered is not None and covered[place] > 0:
        reasons.append(f"{covered[place]:.0%} of the question's words")
    if within(question.spans, pool.rows.created_at[place : place + 1])[0]:
        reasons.append("the time asked for")
    speaker = ranked.features.get("speaker")
    if speaker is not None and speaker[place] > 0:
        reasons.append("the speaker asked about")
    beside = ranked.features.get("session_best")
    if beside is not None and beside[place] > 0.5:
        reasons.append("other hits in the same session")
    if "replaced" in ranked.features and ranked.features["replaced"][place]:
        reasons.append("out of date: something newer replaces it")
    return ", ".join(reasons) or "near other hits"


def signals_of(ranked: Ranked, place: int) -> tuple[Signal, ...]:
    """Return the numbers behind one candidate's score."""
    model = ranked.model
    if model is None:
        return tuple(Signal(k, float(v[place]), 0.0) for k, v in ranked.features.items())
    values = [float(ranked.features[name][place]) for name in model.names]
    signals = tuple(
        Signal(name, value, value * float(weight))
        for name, value, weight in zip(model.names, values, model.weights, strict=True)
    )
    bonus = 0.0 if ranked.bonus is None else float(ranked.bonus[place])
    return (*signals, Signal("policy", 1.0, bonus))

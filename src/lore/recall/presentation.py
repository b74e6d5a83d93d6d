"""Present candidates as hits: passage, date, place and reason; a question as its answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lore.lazy_dataclass import dataclass
from lore.recall import hit_selection
from lore.recall.features import EXCERPT_TOKENS, Floats, needle, within
from lore.recall.hit_selection import Limits, Selection
from lore.recall.outdated import (
    drop_outdated,
    find_newer_fragment,
    find_successor,
    find_successors,
    outdated_shares,
)
from lore.recall.question import Question
from lore.recall.sources import Numbers, plain
from lore.records import (
    OUT_OF_DATE,
    TRUST,
    UNASKED_TRUST,
    Distillation,
    Fragment,
    Hit,
    Message,
    Replaced,
    Session,
    Signal,
)
from lore.store import (
    distillations,
    fragments,
    graph,
    items,
    messages,
    project_rows,
    sessions,
    vectors,
)
from lore.store.database import Connection
from lore.store.keywords import stem
from lore.text import goals, message_features, passages, tokens, words
from lore.text.regex import compile_lazy

if TYPE_CHECKING:
    from lore.recall.ranking import Ranked


QUESTION_TOKENS = 40
"""Token limit of the question above a reply; `read` returns all of it."""

_LONGEST_TOKENS = 80
"""A longer message is more than a question: it is shown itself."""


def _find_reply(db: Connection, asked: Message, text: str, terms: Sequence[str]) -> Message | None:
    """Return the message that answers a question in the assistant's own words."""
    replies = [
        (m, words_) for m in messages.find_answers(db, asked.id) if (words_ := _own_words(m))
    ]
    if not replies:
        return None
    wanted = {*terms, *words.search_terms(text)}
    return replies[_best_reply([words_ for _, words_ in replies], wanted)][0]


def _best_reply(texts: Sequence[str], wanted: Collection[str]) -> int:
    """Return the place of the text that answers: a turn's last words, or a clearly better one.

    An agent may answer, go on to work and end with a remark on that.
    """
    reply_stems = [{stem(word) for word in words.split(text)} for text in texts]
    wanted_stems = {stem(word) for word in wanted}
    shares = [len(wanted_stems & reply_stems[0])]
    shares += [
        -1 if is_announcement(text) else len(wanted_stems & reply)
        for text, reply in zip(texts[1:], reply_stems[1:], strict=True)
    ]
    best = max(range(len(texts)), key=lambda place: (shares[place], -place))
    return best if shares[best] >= shares[0] + _CLEARLY else 0


def is_announcement(text: str) -> bool:
    """Return whether a text only announces what its author is about to do."""
    return text.rstrip().endswith(":") or (
        bool(_ANNOUNCED.match(text)) and len(text.split()) <= _ANNOUNCED_WORDS
    )


WORDS_SHARE = 0.3
"""What all words of the question in a passage count beside its cosine."""

_CLEARLY = 2
"""Another message must have this many more words of the question than the turn's last one to be
shown in its place. Chosen by hand."""

_ANNOUNCED_WORDS = 40
_ANNOUNCED = compile_lazy(
    r"\W*(?:(?:ok(?:ay)?|sure|right|good|now|first|next|so|great)\b[,.!]? ?)*"
    r"(?:let me|let's|i'll|i will|i'm going to|i am going to|looking|checking|reading|searching)\b",
    re.IGNORECASE,
)


def _asks(message: Message, text: str) -> bool:
    """Return whether a message only asks: a short one of the person who talks to the assistant."""
    if message.role != "user" or message.speaker or tokens.count(text) > _LONGEST_TOKENS:
        return False
    return text.rstrip().endswith("?") or goals.is_request(text)


def _own_words(message: Message) -> str:
    """Return the assistant's own words; nothing if the message also quotes others."""
    if TRUST[message_features.lowest_origin(message.parts, message.origin)] < UNASKED_TRUST:
        return ""
    return message_features.spoken_text(message.parts)


class _Options(NamedTuple):
    """How hits are made: with signals, of trusted origins only, with replies among some items."""

    explain: bool
    trusted_only: bool
    among: frozenset[int] | None


def present(
    db: Connection,
    question: Question,
    ranked: Ranked,
    order: Sequence[int] | np.ndarray,
    *,
    limits: Limits,
    explain: bool = False,
    among: Numbers | None = None,
) -> Selection:
    """Turn the best candidates into hits until the hit limit or the token budget is reached.

    Replies are shown only if they are `among` these items.
    """
    is_log = ranked.pool.is_type("distillation")
    places = [int(place) for place in order]
    options = _Options(
        explain, limits.trusted_only, None if among is None else frozenset(among.tolist())
    )
    make_hits = partial(_hits, db, question, ranked, options=options)
    logs = {place for place in places if is_log[place]}
    return hit_selection.select_hits(places, logs, make_hits, limits)


def _hits(
    db: Connection,
    question: Question,
    ranked: Ranked,
    places: Sequence[int],
    shown: Collection[str],
    *,
    options: _Options,
) -> Iterator[tuple[int, Hit]]:
    """Load the items behind some candidates and yield their hits.

    `shown` are the messages that the hits so far already show.
    """
    rows = ranked.pool.rows
    ns = [int(rows.ns[place]) for place in places]
    records = _load_records(db, ranked, places)
    session_ns = {int(rows.sessions[place]) for place in places} - {0}
    fragment_ns = [n for n in ns if isinstance(records.get(n), Fragment)]
    context = _HitContext(
        db,
        sessions.get_sessions(db, sorted(session_ns)),
        project_rows.names_by_id(db),
        options.trusted_only,
        _Excerpts(db, question, ranked),
        options.among,
        _load_ancestors(db, fragment_ns),
        dict.fromkeys(ns) | find_successors(db, ns),
    )
    lines = _line_sources(db, [n for n in ns if isinstance(records.get(n), Distillation)])
    for place in places:
        n = int(rows.ns[place])
        if n not in records:
            continue
        hit = _hit(
            context,
            records[n],
            n,
            int(rows.sessions[place]),
            question,
            score=float(ranked.scores[place]),
            why=_why(question, ranked, place),
        )
        if n in lines:
            hit = _with_selected_lines(hit, lines[n], question, ranked.pool.rarity, shown)
        elif hit.replaced is None and hit.is_outdated:
            hit = replace(
                hit, replaced=find_newer_fragment(db, hit, trusted_only=options.trusted_only)
            )
        yield place, replace(hit, signals=signals_of(ranked, place)) if options.explain else hit


def _load_records(
    db: Connection, ranked: Ranked, places: Sequence[int]
) -> dict[int, Message | Distillation | Fragment]:
    """Return the items behind some candidates by number."""
    pool = ranked.pool
    of_messages, of_logs, of_fragments = (
        [int(pool.ns[place]) for place in places if mask[place]]
        for mask in (
            pool.is_type("message"),
            pool.is_type("distillation"),
            pool.is_type("fragment"),
        )
    )
    return {
        **(messages.get_messages(db, of_messages) if of_messages else {}),
        **(distillations.get_distillations(db, of_logs) if of_logs else {}),
        **(fragments.by_number(db, of_fragments) if of_fragments else {}),
    }


def _load_ancestors(db: Connection, ns: Sequence[int]) -> dict[int, list[Fragment]]:
    """Return the ancestors of each of the fragments, oldest first."""
    above = graph.ancestors_of(db, ns) if ns else {}
    loaded = fragments.by_number(db, sorted({one for line in above.values() for one in line}))
    return {n: [loaded[one] for one in sorted(line) if one in loaded] for n, line in above.items()}


def _line_sources(db: Connection, ns: Sequence[int]) -> dict[int, list[tuple[str, ...] | None]]:
    """Return the source messages of each line; None for a line of outdated messages."""
    source_ns = distillations.source_messages_by_line(db, ns)
    sources = sorted({m for lines in source_ns.values() for line in lines for m in line})
    ids, current = items.ids_of(db, sources), drop_outdated(db, sources)
    return {
        n: [
            tuple(ids[m] for m in line) if not line or current.intersection(line) else None
            for line in lines
        ]
        for n, lines in source_ns.items()
    }


def _with_selected_lines(
    hit: Hit,
    line_sources: Sequence[Sequence[str] | None],
    question: Question,
    rarity: Floats,
    shown: Collection[str],
) -> Hit:
    """Show a distillation by the lines that fit, hold and say something new."""
    selected = hit_selection.select_lines(
        hit.text, line_sources, question, rarity, most_tokens=EXCERPT_TOKENS, already_shown=shown
    )
    size = tokens.count(selected.text)
    return replace(hit, text=selected.text, tokens=size, sources=selected.sources)


class _Excerpts:
    """Cuts long texts to the passage that fits a question best, by meaning and words."""

    def __init__(self, db: Connection, question: Question, ranked: Ranked) -> None:
        self._db = db
        self._terms = list(question.terms)
        self._query = ranked.query
        self._embedder_n = ranked.embedder_n
        self._needles = [needle(term) for term in question.terms]
        self._weights = ranked.pool.word_weights()

    def of(self, n: int, text: str, spoken: str) -> str:
        """Return the best passage of a message: all of a short one."""
        if tokens.count(text) <= EXCERPT_TOKENS:
            return text
        cut = passages.split(spoken)
        rows = self._load(n) if len(cut) > 1 and self._query.any() else None
        if rows is None or len(rows) != len(cut):
            return tokens.clip_around(text, EXCERPT_TOKENS, self._terms)
        covered = self._covered([spoken[a:b] for a, b in cut])
        best = int(np.argmax(rows @ self._query + WORDS_SHARE * covered))
        if covered[best] == 0 and self._covered([text])[0] > 0:  # its words are in a call
            return tokens.clip_around(text, EXCERPT_TOKENS, self._terms)
        start, end = cut[best]
        passage = spoken[start:end]
        place = text.find(passage)
        before = "…" if place > 0 or (place < 0 and start > 0) else ""
        after = "…" if place + len(passage) < len(text) else ""
        return before + tokens.clip_around(passage, EXCERPT_TOKENS, self._terms) + after

    def _load(self, n: int) -> vectors.Matrix | None:
        numbers = np.array([n], np.int64)
        loaded = vectors.load_passages(self._db, self._embedder_n, numbers, len(self._query))
        return loaded.get(n)

    def _covered(self, texts: Sequence[str]) -> Floats:
        levelled = [plain(text) for text in texts]
        covered = np.zeros(len(texts))
        for pattern, weight in zip(self._needles, self._weights.tolist(), strict=True):
            covered += [weight * (pattern in text) for text in levelled]
        return covered


@dataclass(frozen=True, slots=True)
class _HitContext:
    """What the hits of one page have in common."""

    db: Connection
    sessions: dict[int, Session]
    project_names: dict[str, str]
    trusted_only: bool
    excerpts: _Excerpts
    among: frozenset[int] | None
    ancestors: dict[int, list[Fragment]]
    successors: dict[int, Replaced | None]
    """What replaced the items of the page."""

    def may_show(self, n: int) -> bool:
        """Return whether an item is within the filters of the question."""
        return self.among is None or n in self.among

    def is_outdated(self, n: int, session_n: int) -> bool:
        """Return whether something newer replaces a message."""
        return n in outdated_shares(self.db, [n], [session_n])

    def successor_of(self, n: int) -> Replaced | None:
        """Return the statement that replaced an item, or may have."""
        if n not in self.successors:
            self.successors[n] = find_successor(self.db, n)
        return self.successors[n]

    def text_of(self, message: Message) -> str:
        """Return a message's readable text, without parts that nobody said."""
        return message_features.readable_text(
            part for part in message.parts if message_features.is_dialogue_part(part)
        )

    def voice_of(self, message: Message) -> str:
        """Return who says a message; names are untrusted, so only the role if `trusted_only`."""
        return message.role if self.trusted_only else message.speaker or message.role

    def above(self, n: int) -> list[Fragment]:
        """Return the ancestors of a fragment that may be named."""
        return [f for f in self.ancestors[n] if not self.trusted_only or f.trust >= UNASKED_TRUST]

    def project_name(self, project_id: str | None) -> str:
        return self.project_names.get(project_id or "", "")

    def place_of(self, session_n: int) -> tuple[str, str, str]:
        """Return the title, breadcrumb and project id of a session."""
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
    context: _HitContext,
    record: Message | Distillation | Fragment,
    n: int,
    session_n: int,
    question: Question,
    *,
    score: float,
    why: str,
) -> Hit:
    title, trail, project_id = context.place_of(session_n)
    terms = list(question.terms)
    if isinstance(record, Message):
        return _message_hit(context, record, n, session_n, terms, score, why)
    if isinstance(record, Distillation):
        return Hit(
            record.id, "distillation", record.text, title, score, why, record.created_at,
            record.tokens, trail, role="log", session_id=record.session_id,
            project_id=project_id, origin="assistant",
        )  # fmt: skip
    crumbs = [context.project_name(record.project_id), *(f.summary for f in context.above(n))]
    text = tokens.clip_around(record.content, EXCERPT_TOKENS, terms)
    return Hit(
        record.id, "fragment", text, record.summary, score, why, record.created_at,
        tokens.count(text), " › ".join(crumb for crumb in crumbs if crumb),
        kind=record.kind, depth=record.depth, session_id=record.session_id or "",
        project_id=record.project_id or "", origin=record.origin,
        sources=record.source_messages, replaced=context.successor_of(n),
    )  # fmt: skip


def _message_hit(
    context: _HitContext,
    message: Message,
    n: int,
    session_n: int,
    terms: list[str],
    score: float,
    why: str,
) -> Hit:
    """Return the hit of a message; one that only asks is shown as its answer.

    A question that nobody answered has no text: it is not shown.
    """
    title, trail, project_id = context.place_of(session_n)
    text = context.text_of(message)
    shown, shown_n, asked = message, n, ""
    if _asks(message, text):
        reply = _find_reply(context.db, message, text, terms)
        reply_n = items.find_number(context.db, reply.id) if reply else None
        if reply is not None and reply_n is not None and context.may_show(reply_n):
            asked = tokens.clip(text, QUESTION_TOKENS)
            shown, shown_n = reply, reply_n
            text = context.text_of(reply)
            if OUT_OF_DATE not in why and context.is_outdated(reply_n, session_n):
                why = f"{why}, {OUT_OF_DATE}"
        elif text.rstrip().endswith("?"):
            text = ""
    text = context.excerpts.of(shown_n, text, message_features.spoken_text(shown.parts))
    return Hit(
        shown.id, "message", text, title, score, why, shown.created_at,
        tokens.count(text) + tokens.count(asked), trail, role=context.voice_of(shown),
        session_id=shown.session_id, project_id=project_id, origin=shown.origin,
        question=asked, question_id=message.id if asked else "",
        replaced=context.successor_of(shown_n),
    )  # fmt: skip


def _why(question: Question, ranked: Ranked, place: int) -> str:
    pool = ranked.pool
    reasons = []
    keyword_rank = pool.keyword_rank(place)
    if keyword_rank is not None:
        reasons.append(f"keywords #{keyword_rank}")
    vector_rank = pool.vector_rank(place)
    if vector_rank is not None:
        reasons.append(f"meaning #{vector_rank} ({pool.cosine[place]:.2f})")
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
        reasons.append(OUT_OF_DATE)
    return ", ".join(reasons) or "near other hits"


def signals_of(ranked: Ranked, place: int) -> tuple[Signal, ...]:
    """Return the features behind one candidate's score."""
    model = ranked.model
    if model is None:
        return tuple(Signal(k, float(v[place]), 0.0) for k, v in ranked.features.items())
    direct = model.contributions(ranked.scored)[place].tolist()
    signals = tuple(
        Signal(name, float(ranked.scored[name][place]), added)
        for name, added in zip(model.names, direct, strict=True)
    )
    together = float(model.interaction(ranked.scored)[place])
    bonus = 0.0 if ranked.bonus is None else float(ranked.bonus[place])
    return (*signals, Signal("interaction", 1.0, together), Signal("policy", 1.0, bonus))

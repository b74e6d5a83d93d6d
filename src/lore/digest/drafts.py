"""Build drafts from extracted knowledge: validate, redact and attribute each, and detect quotes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.index.vector_index import VectorFilter
from lore.lazy_dataclass import dataclass
from lore.llm import Summarizer
from lore.records import TRUST, UNASKED_TRUST, EdgeKind, Extract, FragmentKind, Message, Segment
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor, redact_tree
from lore.store import vectors
from lore.text import entities, restatement, sentences, words
from lore.text.message_features import is_dialogue_part, lowest_origin
from lore.text.pasted_text import leave_out_pasted

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]


class NearestSearch(Protocol):
    """Searches for the items nearest to a vector, as `Sources.nearest` of recall does."""

    def __call__(
        self, query: Scores, k: int, *, where: VectorFilter | None = None
    ) -> tuple[Numbers, Scores]:
        """Return the numbers of items and their cosines, nearest first."""


@dataclass(frozen=True, slots=True)
class CurationContext:
    """The summarizer, embedder, vector search and redactor of one memory."""

    summarizer: Summarizer
    embedder: Embedder
    nearest: NearestSearch
    redactor: Redactor = field(default=EPHEMERAL_REDACTOR)

    def embed(self, texts: Sequence[str]) -> Scores | None:
        """Return vectors of texts; None without an embedder."""
        if not self.embedder.dimension or not texts:
            return None
        return self.embedder.embed(texts)


SUMMARY_CHARS = 400
MAX_CHARS = 8_000
"""A longer answer has copied a document instead of extracting knowledge."""

MAX_DEPTH = 3
"""The maximum depth of an extracted tree."""

MAX_DRAFTS = 30
"""Per exchange with all children: a longer answer does not select."""

QUOTED_WORDS, QUOTED_SHARE = 5, 0.5
"""A draft quotes a message if this share of it, in runs of this many words, occurs there."""


@dataclass(frozen=True, slots=True)
class DraftFragment:
    """A draft before it is stored; `parent` is the index of its parent among the drafts.

    `downgraded` means that its payload did not match the kind it was extracted as.
    """

    content: str
    summary: str
    kind: FragmentKind
    importance: float
    payload: Mapping[str, Any]
    sources: tuple[str, ...]
    parent: int | None
    corrects: str
    edges: tuple[tuple[EdgeKind, str], ...]
    vector: Scores | None = None
    corrects_vector: Scores | None = None
    downgraded: bool = False
    same_as: str = ""
    corrects_id: str = ""


MAX_UNTRUSTED_MESSAGES = 400
"""Untrusted messages that are remembered: an agent repeats a page soon, or not verbatim."""


class QuoteDetector:
    """Detects quotes of untrusted messages of a session by their runs of words."""

    def __init__(self) -> None:
        self._runs: dict[str, set[tuple[str, ...]]] = {}

    def add(self, messages: Sequence[Message]) -> None:
        """Add messages, and drop the oldest ones beyond the limit."""
        for message in messages:
            if TRUST[lowest_origin(message.parts, message.origin)] < UNASKED_TRUST:
                spoken = (part.text for part in message.parts if is_dialogue_part(part))
                self._runs[message.id] = _word_runs(" ".join(spoken))
        for id_ in list(self._runs)[:-MAX_UNTRUSTED_MESSAGES]:
            del self._runs[id_]

    def find_quoted(self, content: str) -> list[str]:
        """Return the untrusted messages that a draft quotes, whoever it is attributed to.

        What an agent repeats from a page or file must not gain the agent's trust.
        """
        runs = _word_runs(content)
        return [
            id_
            for id_, message_runs in self._runs.items()
            if runs and len(runs & message_runs) >= QUOTED_SHARE * len(runs)
        ]


def is_of_pasted_text(content: str, typed: Sequence[str]) -> bool:
    """Return whether a draft quotes messages of a person only where they may be pasted.

    A plan, a review or a log that a person hands over is not the person's own word.
    """
    runs = _word_runs(content)
    if not runs:
        return False

    def quotes(texts: Iterable[str]) -> bool:
        return any(len(runs & _word_runs(text)) >= QUOTED_SHARE * len(runs) for text in texts)

    return quotes(typed) and not quotes(map(leave_out_pasted, typed))


def is_typed(content: str, typed: Sequence[str], pasted_stems: frozenset[str]) -> bool:
    """Return whether a person typed all that a chat made of their messages, in the same sense.

    A chat rewords, so that runs of words do not show what it has from pasted text. If the messages
    have none, `pasted_stems` of others around them count: a chat may name any message.
    """
    own = [leave_out_pasted(text) for text in typed]
    pairs = zip(own, typed, strict=True)
    if all(words.split(rest) == words.split(text) for rest, text in pairs):
        stems = _stems(content)
        if pasted_stems.isdisjoint(stems):
            return True
        same_sense = entities.is_negated(content) == any(map(entities.is_negated, own))
        if same_sense and pasted_stems.isdisjoint(stems.difference(*map(_stems, own))):
            return True
    return restatement.is_restated(content, own)


def find_pasted_stems(exchange: Segment) -> frozenset[str]:
    """Return the stems of the content words in an exchange that people may only have pasted."""
    stems = set[str]()
    for one in (*exchange.earlier, *exchange.messages, *exchange.later):
        if one.origin == "user":
            stems |= _stems(one.text) - _stems(leave_out_pasted(one.text))
    return frozenset(stems)


def _stems(text: str) -> frozenset[str]:
    listed = words.split(restatement.leave_out_dates(text))
    return frozenset(words.stem(word) for word in listed if word not in words.STOP_WORDS)


def build_drafts(
    extracts: Sequence[Extract],
    exchange: Segment,
    messages: Sequence[Message],
    quotes: QuoteDetector,
    context: CurationContext,
) -> tuple[list[DraftFragment], int]:
    """Return the drafts of an exchange, parents before children, and how many were dropped."""
    exchange_ids = [one.id for one in exchange.messages]
    known_ids = {message.id for message in messages}
    known_ids.update(one.id for one in (*exchange.earlier, *exchange.later))
    drafts: list[DraftFragment] = []
    dropped = 0
    waiting: list[tuple[Extract, int | None, int]] = [(one, None, 1) for one in extracts]
    while waiting:
        extract, parent, depth = waiting.pop(0)
        new = _check_draft(extract, parent, context) if depth <= MAX_DEPTH else None
        if new is None or len(drafts) >= MAX_DRAFTS:
            dropped += 1
            below = parent
        else:
            claimed = [id_ for id_ in extract.sources if id_ in known_ids] or exchange_ids
            sources = dict.fromkeys([*claimed, *quotes.find_quoted(new.content)])
            drafts.append(replace(new, sources=tuple(sources)))
            below = len(drafts) - 1
        waiting[:0] = [(child, below, depth + 1) for child in extract.children]
    return _embed_drafts(drafts, context), dropped


def _check_draft(
    extract: Extract, parent: int | None, context: CurationContext
) -> DraftFragment | None:
    content, summary, corrects = (
        context.redactor.redact(words.clean(text))
        for text in (extract.content, extract.summary, extract.corrects)
    )
    content = content.strip()
    corrects = sentences.one_line(corrects, SUMMARY_CHARS)
    title = sentences.one_line(summary, SUMMARY_CHARS) or sentences.summary(content)
    if not content or len(content) > MAX_CHARS or not 0 <= extract.importance <= 1:
        return None
    from lore import payloads  # pydantic is slow to import, and 'lore remember' needs none of it

    payload = redact_tree(context.redactor, extract.payload)
    checked = payloads.validate_payload(extract.kind, payload, summary=title)
    if checked is None:
        return None
    kind, fields = checked
    if corrects:
        fields = {**fields, "replaces": corrects}
    return DraftFragment(
        content=content,
        summary=title,
        kind=kind,
        importance=extract.importance,
        payload=fields,
        sources=(),
        parent=parent,
        corrects=corrects,
        edges=extract.edges,
        downgraded=kind != extract.kind,
        same_as=extract.same_as,
        corrects_id=extract.corrects_id,
    )


def _word_runs(text: str) -> set[tuple[str, ...]]:
    listed = words.split(text)
    return {tuple(listed[i : i + QUOTED_WORDS]) for i in range(len(listed) - QUOTED_WORDS + 1)}


def _embed_drafts(drafts: Sequence[DraftFragment], context: CurationContext) -> list[DraftFragment]:
    rows = context.embed([vectors.fragment_text(one.summary, one.content) for one in drafts])
    if rows is None:
        return list(drafts)
    correcting = [place for place, one in enumerate(drafts) if one.corrects]
    replaced = context.embed([drafts[place].corrects for place in correcting])
    by_place = dict(zip(correcting, replaced if replaced is not None else (), strict=True))
    return [
        replace(one, vector=rows[place], corrects_vector=by_place.get(place))
        for place, one in enumerate(drafts)
    ]

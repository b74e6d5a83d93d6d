"""Drafting: what extraction gave, checked, redacted, traced to its messages, with its vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lore import payloads
from lore.curate.means import CurationMeans, Scores
from lore.records import TRUST, UNASKED_TRUST, EdgeKind, Extract, FragmentKind, Message, Segment
from lore.redaction import redact_tree
from lore.store import vectors
from lore.text import lines, words
from lore.text.parts import is_spoken, lowest_origin

SUMMARY_CHARS = 400
MOST_CHARS = 8_000
"""One unit of knowledge; a reply that gives more has copied a document."""

DEEPEST = 3
"""Levels of a tree that extraction may give."""

MOST_DRAFTS = 30
"""Of one exchange with all children: a reply that gives more is not selecting."""

QUOTED_WORDS, QUOTED_SHARE = 5, 0.5
"""A draft of which so much, in runs of so many words, stands in a message is a quote of it."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft on its way in; `parent` is the place of its parent among the drafts.

    One that is `downgraded` was given as another kind, with a payload that does not fit it.
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


HEARD = 400
"""Messages of others that are remembered: an agent repeats a page soon, or not word for word."""


class Voices:
    """The messages of a session in which someone of little trust speaks, by runs of words."""

    def __init__(self) -> None:
        self._runs: dict[str, set[tuple[str, ...]]] = {}

    def hear(self, messages: Sequence[Message]) -> None:
        """Listen to more of the session; of what is long ago nothing is remembered."""
        for message in messages:
            if TRUST[lowest_origin(message.parts, message.origin)] < UNASKED_TRUST:
                self._runs[message.id] = _runs(_spoken(message))
        for id_ in list(self._runs)[:-HEARD]:
            del self._runs[id_]

    def quoted_in(self, content: str) -> list[str]:
        """Return the messages of which a draft repeats the words, whoever is said to say it.

        What an agent repeats of a page or a file is not the agent's: it is traced back there.
        """
        runs = _runs(content)
        return [
            id_
            for id_, told in self._runs.items()
            if runs and len(runs & told) >= QUOTED_SHARE * len(runs)
        ]


def draft(
    extracts: Sequence[Extract],
    exchange: Segment,
    messages: Sequence[Message],
    voices: Voices,
    means: CurationMeans,
) -> tuple[list[Drafted], int]:
    """Return the drafts of an exchange, parents before children, and how many were dropped."""
    origin = _Origin(
        said=tuple(one.id for one in exchange.said),
        known=frozenset(message.id for message in messages),
        voices=voices,
    )
    drafts: list[Drafted] = []
    dropped = 0
    waiting: list[tuple[Extract, int | None, int]] = [(one, None, 1) for one in extracts]
    while waiting:
        extract, parent, depth = waiting.pop(0)
        made = _checked(extract, parent, origin, means) if depth <= DEEPEST else None
        if made is None or len(drafts) >= MOST_DRAFTS:
            dropped += 1
            below = parent
        else:
            drafts.append(made)
            below = len(drafts) - 1
        waiting[:0] = [(child, below, depth + 1) for child in extract.children]
    return _with_vectors(drafts, means), dropped


@dataclass(frozen=True, slots=True)
class _Origin:
    """What drafts of an exchange may come from."""

    said: tuple[str, ...]
    known: frozenset[str]
    voices: Voices

    def sources_of(self, extract: Extract, content: str) -> tuple[str, ...]:
        """Return the messages of a draft: those it names, else all, and those that it quotes."""
        named = [id_ for id_ in extract.sources if id_ in self.known] or self.said
        return tuple(dict.fromkeys([*named, *self.voices.quoted_in(content)]))


def _checked(
    extract: Extract, parent: int | None, origin: _Origin, means: CurationMeans
) -> Drafted | None:
    content = means.redactor.redact(words.clean(extract.content)).strip()
    title = lines.one_line(means.redactor.redact(words.clean(extract.summary)), SUMMARY_CHARS)
    title = title or lines.summary(content)
    if not content or len(content) > MOST_CHARS or not 0 <= extract.importance <= 1:
        return None
    payload = redact_tree(means.redactor, extract.payload)
    checked = payloads.check(extract.kind, payload, summary=title)
    if checked is None:
        return None
    kind, fields = checked
    corrects = lines.one_line(means.redactor.redact(words.clean(extract.corrects)), SUMMARY_CHARS)
    if corrects:
        fields = {**fields, "replaces": corrects}
    return Drafted(
        content=content,
        summary=title,
        kind=kind,
        importance=extract.importance,
        payload=fields,
        sources=origin.sources_of(extract, content),
        parent=parent,
        corrects=corrects,
        edges=extract.edges,
        downgraded=kind != extract.kind,
    )


def _spoken(message: Message) -> str:
    return " ".join(part.text for part in message.parts if is_spoken(part))


def _runs(text: str) -> set[tuple[str, ...]]:
    told = words.split(text)
    return {tuple(told[i : i + QUOTED_WORDS]) for i in range(len(told) - QUOTED_WORDS + 1)}


def _with_vectors(drafts: Sequence[Drafted], means: CurationMeans) -> list[Drafted]:
    rows = means.embed([vectors.fragment_text(one.summary, one.content) for one in drafts])
    if rows is None:
        return list(drafts)
    correcting = [place for place, one in enumerate(drafts) if one.corrects]
    replaced = means.embed([drafts[place].corrects for place in correcting])
    by_place = dict(zip(correcting, replaced if replaced is not None else (), strict=True))
    return [
        replace(one, vector=rows[place], corrects_vector=by_place.get(place))
        for place, one in enumerate(drafts)
    ]

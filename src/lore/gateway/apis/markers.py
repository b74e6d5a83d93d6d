"""Markers: texts in a client's history that stand for recall calls the gateway has run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from lore.gateway.apis.json_values import (
    Json,
    as_count,
    as_object,
    as_text,
    parse_or_none,
    to_json_text,
)
from lore.text import memory_tags

_MARKER_BYTES = memory_tags.search_mark("").partition(": ")[2].rstrip("]").encode()

_MODEL_TEXT_FIELDS = frozenset({
    *("input", "args", "arguments"),
    *("text", "summary", "thinking", "reasoning", "reasoning_content"),
})
"""Fields with text that a model wrote: call arguments and reasoning."""

Redact = Callable[[object], object]
"""Redacts secrets in a text, or in all texts of a JSON value."""

SEARCH_LIMIT_TEXT = "No more searches in this answer: answer now, with what has been found."
SEARCHES_EXHAUSTED_TEXT = (
    "[Memory was searched ten times for this answer, and the model asked for more: it ends here.]"
)
SEARCH_FAILED_TEXT = "Memory could not be searched."


@dataclass(frozen=True, slots=True)
class Marker:
    """A recall call and its result, stored so that they can be put back into the history.

    `round` identifies the response that made the call; the calls of a round are answered together.
    `tail` is the number of blocks after the last call of that response. `is_mixed` says that the
    response also called tools of the client, so that all results go into the client's next message.
    """

    call: Json
    result: str
    round: str = ""
    tail: int = 0
    is_mixed: bool = False
    place: int = 0
    """Position among the blocks or calls of its response."""
    extra: Json = field(default_factory=dict)
    """Other fields of the response that the client's history does not keep."""

    def to_json(self) -> str:
        """Return the marker as JSON text for storage."""
        return to_json_text(asdict(self))


Atom = Json | Marker
"""A part of a message in the API's format, or a marker in its place."""

A = TypeVar("A")


def parse_marker(stored: str | None) -> Marker | None:
    """Parse a stored marker; None if there is none."""
    fields = as_object(parse_or_none(stored)) if stored else {}
    if not fields:
        return None
    return Marker(
        as_object(fields.get("call")),
        as_text(fields.get("result")),
        as_text(fields.get("round")),
        as_count(fields.get("tail")),
        fields.get("is_mixed") is True,
        as_count(fields.get("place")),
        as_object(fields.get("extra")),
    )


def find_once(find: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Wrap a lookup so that it finds each marker once, even if a client repeats its id."""
    met: set[str] = set()

    def find_first(marker_id: str) -> str | None:
        if marker_id in met:
            return None
        met.add(marker_id)
        return find(marker_id)

    return find_first


def redact_marker(stored: str, redact: Redact) -> str:
    """Return a stored marker with the model's texts redacted.

    Ids and signatures stay as they are, because providers verify them.
    """
    fields = as_object(parse_or_none(stored))
    hidden = _redact_tree(fields, redact)
    return stored if hidden == fields else to_json_text(hidden)


def _redact_tree(value: object, redact: Redact) -> object:
    if isinstance(value, list):
        return [_redact_tree(one, redact) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _redact_value(one, redact)
        if name in _MODEL_TEXT_FIELDS
        else _redact_tree(one, redact)
        for name, one in value.items()
    }


def _redact_value(value: object, redact: Redact) -> object:
    """Redact a text; arguments that are JSON text stay valid JSON."""
    parsed = parse_or_none(value) if isinstance(value, str) else None
    if not isinstance(parsed, dict):
        return redact(value)
    hidden = redact(parsed)
    return value if hidden == parsed else to_json_text(hidden)


@dataclass(frozen=True, slots=True)
class AnswerRounds:
    """The upstream responses that a client's message was joined from.

    `closed` holds responses that called only recall: their blocks and results. `rest` holds the
    blocks of the last response, and `waiting` the results for the client's next message.
    """

    closed: list[tuple[list[Json], list[Marker]]]
    rest: list[Json]
    waiting: list[Marker]


def split_rounds(atoms: Sequence[Atom]) -> AnswerRounds:
    """Split blocks and markers into the responses that they were joined from."""
    closed: list[tuple[list[Json], list[Marker]]] = []
    blocks: list[Json] = []
    waiting: list[Marker] = []
    remaining = -1
    for at, atom in enumerate(atoms):
        if isinstance(atom, Marker):
            blocks.append(atom.call)
            waiting.append(atom)
            is_last = not any(
                isinstance(later, Marker) and later.round == atom.round for later in atoms[at + 1 :]
            )
            remaining = atom.tail if is_last and not atom.is_mixed else -1
        else:
            blocks.append(atom)
            remaining -= remaining > 0
        if remaining == 0:
            closed.append((blocks, waiting))
            blocks, waiting, remaining = [], [], -1
    return AnswerRounds(closed, blocks, waiting)


def own_paragraph(text: str) -> str:
    """Return a text as its own paragraph, since clients concatenate adjacent texts."""
    return f"\n\n{text}\n\n"


def marker_text(marker_id: str) -> str:
    """Return the text that replaces a recall call in the client's history."""
    return own_paragraph(memory_tags.search_mark(marker_id))


def may_have_markers(body: bytes) -> bool:
    """Return whether a body contains the text of a marker; a cheap pre-check."""
    return _MARKER_BYTES in body


def split_markers(text: str, find: Callable[[str], str | None]) -> Iterator[str | Marker]:
    """Yield the pieces of a text; markers that are found come in place of their texts."""
    for marker_id, piece in split_text(text):
        marker = parse_marker(find(marker_id)) if marker_id else None
        yield piece if marker is None else marker


def expand_items(
    items: Iterable[Json],
    split: Callable[[Json], Iterable[A | Marker]],
    expand: Callable[[Json, list[A | Marker]], Iterable[Json]],
) -> list[Json] | None:
    """Return items with those that have markers expanded, or None if none of them has any."""
    expanded: list[Json] = []
    is_expanded = False
    for item in items:
        atoms = list(split(item))
        has_markers = any(isinstance(atom, Marker) for atom in atoms)
        expanded += expand(item, atoms) if has_markers else [item]
        is_expanded = is_expanded or has_markers
    return expanded if is_expanded else None


def split_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text, each with its marker id, or '' for ordinary text."""
    at = 0
    for match in memory_tags.SEARCH_MARK.finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()]
        yield match[1], match[0]
        at = match.end()
    if at < len(text):
        yield "", text[at:]

"""Markers: what a client's history holds in the place of a call that the gateway carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from lore.gateway.apis.shapes import Json, count, dumped, loaded, table, text
from lore.text import marks

_SIGN = marks.searched("").partition(": ")[2].rstrip("]").encode()

_WRITTEN = frozenset({
    *("input", "args", "arguments"),
    *("text", "summary", "thinking", "reasoning", "reasoning_content"),
})
"""Where the wires have the words of a model: the arguments of its calls, and its thoughts."""

Redact = Callable[[object], object]
"""Takes the secrets out of a text, or out of all texts of a tree."""

LIMIT = "No more searches in this answer: answer now, with what has been found."
ENOUGH = (
    "[Memory was searched ten times for this answer, and the model asked for more: it ends here.]"
)
FAILED = "Memory could not be searched."


@dataclass(frozen=True, slots=True)
class Marker:
    """A call of recall and its result, as they have to be put back.

    `round` is the answer that it was part of: its calls are answered together. `tail` is how
    many of the answer's blocks stand behind the last of them. `is_mixed` says that the answer
    also called tools of the client, so that all results stand in the client's next message.
    """

    call: Json
    result: str
    round: str = ""
    tail: int = 0
    is_mixed: bool = False
    place: int = 0
    """Where it stood among the blocks or calls of its answer."""
    extra: Json = field(default_factory=dict)
    """What else the answer said that has no place of its own in the client's history."""

    def write(self) -> str:
        """Return the marker as a text that can be stored."""
        return dumped(asdict(self))


def read(stored: str | None) -> Marker | None:
    """Return a marker as it was stored, or None if it was not."""
    told = table(loaded(stored)) if stored else {}
    if not told:
        return None
    return Marker(
        table(told.get("call")),
        text(told.get("result")),
        text(told.get("round")),
        count(told.get("tail")),
        told.get("is_mixed") is True,
        count(told.get("place")),
        table(told.get("extra")),
    )


def once(find: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Return what finds each marker once: an id may stand for one call, whoever repeats it."""
    met: set[str] = set()

    def find_first(marker_id: str) -> str | None:
        if marker_id in met:
            return None
        met.add(marker_id)
        return find(marker_id)

    return find_first


def redacted(stored: str, redact: Redact) -> str:
    """Return a stored marker in which what a model wrote has passed a redactor.

    Ids and signatures stay as they are: providers check them.
    """
    told = table(loaded(stored))
    hidden = _redacted(told, redact)
    return stored if hidden == told else dumped(hidden)


def _redacted(value: object, redact: Redact) -> object:
    if isinstance(value, list):
        return [_redacted(one, redact) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _words(one, redact) if name in _WRITTEN else _redacted(one, redact)
        for name, one in value.items()
    }


def _words(value: object, redact: Redact) -> object:
    """Return words without secrets; arguments that are written as JSON stay that."""
    parsed = loaded(value) if isinstance(value, str) else None
    if not isinstance(parsed, dict):
        return redact(value)
    hidden = redact(parsed)
    return value if hidden == parsed else dumped(hidden)


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a client has of several answers, taken apart again.

    Each of `closed` called recall alone: its blocks, and the results that followed. `rest` is
    what the last one said, and `waiting` are the results that stand in the next message.
    """

    closed: list[tuple[list[Json], list[Marker]]]
    rest: list[Json]
    waiting: list[Marker]


def take_apart(atoms: Sequence[Json | Marker]) -> Rounds:
    """Return the answers that blocks with markers among them were made of."""
    closed: list[tuple[list[Json], list[Marker]]] = []
    blocks: list[Json] = []
    waiting: list[Marker] = []
    left = -1
    for at, atom in enumerate(atoms):
        if isinstance(atom, Marker):
            blocks.append(atom.call)
            waiting.append(atom)
            is_last = not any(
                isinstance(later, Marker) and later.round == atom.round for later in atoms[at + 1 :]
            )
            left = atom.tail if is_last and not atom.is_mixed else -1
        else:
            blocks.append(atom)
            left -= left > 0
        if left == 0:
            closed.append((blocks, waiting))
            blocks, waiting, left = [], [], -1
    return Rounds(closed, blocks, waiting)


def apart(told: str) -> str:
    """Return words that stand on a line of their own; clients join texts that follow each other."""
    return f"\n\n{told}\n\n"


def sign(marker_id: str) -> str:
    """Return the words that stand in a client's history in the place of a call."""
    return apart(marks.searched(marker_id))


def may_have_markers(body: bytes) -> bool:
    """Tell whether a body names a marker at all; cheap for those that do not."""
    return _SIGN in body


def split(said: str) -> Iterator[tuple[str, str]]:
    """Yield a text in pieces, each with the id of the marker that it is, or ''."""
    at = 0
    for found in marks.SEARCHED.finditer(said):
        if found.start() > at:
            yield "", said[at : found.start()]
        yield found[1], found[0]
        at = found.end()
    if at < len(said):
        yield "", said[at:]

"""What comes back from a question or a look: hits, answers, readings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lore.records.kinds import ItemType, Origin, Storing
from lore.records.knowledge import Edge, Fragment
from lore.records.talk import Distillation, Message, Session


@dataclass(frozen=True, slots=True)
class Signal:
    """One number behind a score: what it is, its value, and what it added."""

    name: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: the text, where it comes from, its score and why it is here.

    `sources` are the messages that what is shown was derived from, the best first; `answer` is what
    the assistant said to a message that asks.
    """

    id: str
    type: ItemType
    text: str
    title: str
    score: float
    why: str
    created_at: datetime
    tokens: int
    breadcrumb: str = ""
    kind: str = ""
    role: str = ""
    depth: int = 0
    session_id: str = ""
    project_id: str = ""
    origin: Origin = "user"
    same: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """One session that answers a question, with the messages that say so."""

    session_id: str
    title: str
    started_at: datetime
    score: float
    best: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one item in one recall: where it ranked, and what removed it."""

    id: str
    rank: int | None
    keyword_rank: int | None
    vector_rank: int | None
    score: float | None
    verdict: str
    signals: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one recall; hits that are not `relevant` are only what lies nearest."""

    question: str
    hits: tuple[Hit, ...]
    standing: tuple[Hit, ...] = ()
    tokens: int = 0
    considered: int = 0
    notice: str = ""
    fates: tuple[Fate, ...] = ()
    relevant: bool = True

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Count the hits."""
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class Title:
    """A fragment by name only: what a reader sees before deciding to read it."""

    id: str
    title: str
    kind: str
    depth: int
    tokens: int
    children: int = 0
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of something that was to be remembered.

    `known` was there already and `updated` got the new words, under the id that is given;
    `resembles` are the nearest of the others.
    """

    id: str
    outcome: Storing
    title: Title
    parent: Title | None = None
    resembles: tuple[Title, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One item as it is read: whole, with its surroundings by title."""

    id: str
    type: ItemType
    text: str
    title: str
    created_at: datetime
    tokens: int
    origin: Origin
    fragment: Fragment | None = None
    message: Message | None = None
    distillation: Distillation | None = None
    session: Session | None = None
    parent: Title | None = None
    children: tuple[Title, ...] = ()
    edges: tuple[Edge, ...] = ()
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A subtree of fragments by title."""

    title: Title
    below: tuple[Outline, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an item comes from, and the numbers behind its strength."""

    reading: Reading
    sources: tuple[Message, ...]
    origins: dict[str, Origin]
    versions: int
    numbers: dict[str, float]
    superseded_by: str | None
    supersedes: tuple[str, ...]
    times_recalled: int
    allowed: str


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened to a fragment."""

    at: datetime
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A message that was said or a fragment that was learned around some moment.

    `what` is who said it or of which kind it is; `session` is the title of its session.
    """

    id: str
    type: ItemType
    at: datetime
    what: str
    text: str
    origin: Origin
    session_id: str = ""
    session: str = ""
    is_anchor: bool = False


@dataclass(frozen=True, slots=True)
class Revocation:
    """What went with something that is no longer believed."""

    messages: int
    fragments: tuple[Title, ...] = ()
    distillations: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()

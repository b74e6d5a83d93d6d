"""Results of recall and search, and what is injected into prompts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from lore.lazy_dataclass import dataclass
from lore.records.kinds import InstructionState, ItemType, Origin, Outcome, Storing, Strength
from lore.records.knowledge import Edge, Fragment
from lore.records.sessions import Distillation, Message, Session
from lore.records.task_records import Handoff, OpenWork

OUT_OF_DATE = "out of date: something newer replaces it"
"""The reason of a hit that is superseded or was taken back."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A feature of a score: its name, its value and its contribution."""

    name: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Replaced:
    """What replaced a text: all of it, some of its cases (`partly`), or perhaps (`may_replace`).

    `by` is the newer sentence, `by_id` its item, `at` when it was said. `what` is the sentence that
    it replaced, if the text says more than that; the rest holds.
    """

    how: str
    by_id: str
    by: str
    at: datetime
    what: str = ""

    @property
    def label(self) -> str:
        """Return what happened when, without any stored text."""
        return f"{_REPLACED_HOW[self.how]} on {self.at:%Y-%m-%d}"

    @property
    def note(self) -> str:
        """Return the mark that a reader is shown."""
        what = f' ("{self.what}")' if self.what else ""
        return f"{self.label}{what} by: {self.by}"


_REPLACED_HOW = {
    "replaces": "replaced",
    "partly": "replaced in part",
    "may_replace": "may be replaced",
}


PUBLISHED = "published by "
"""Begins the reason of a hit that is of a team."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: text, source, score and reason.

    `sources` are the messages that the text was derived from, best first; `question`
    is what a reply answers, `question_id` the message that asked it.
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
    question: str = ""
    question_id: str = ""
    replaced: Replaced | None = None

    @property
    def is_outdated(self) -> bool:
        """Return whether something newer replaces it, or its author took it back."""
        is_replaced = self.replaced is not None and self.replaced.how != "may_replace"
        return is_replaced or OUT_OF_DATE in self.why

    @property
    def publisher(self) -> str:
        """Return who published it to which team; empty if it is of the memory itself."""
        return self.why if self.why.startswith(PUBLISHED) else ""

    @property
    def note(self) -> str:
        """Return what a reader is told about its validity; empty if it holds."""
        if self.replaced is not None:
            return self.replaced.note
        return "out of date" if self.is_outdated else ""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that answers a question, with its best messages."""

    session_id: str
    title: str
    started_at: datetime
    score: float
    best: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class RecallTrace:
    """The trace of one item in one recall: its ranks, and the filter that removed it."""

    id: str
    rank: int | None
    keyword_rank: int | None
    vector_rank: int | None
    score: float | None
    verdict: str
    signals: tuple[Signal, ...] = ()


STRONG, LIKELY = 0.75, 0.4
"""Probabilities from which an answer is called strong or likely."""


def strength_of(probability: float) -> Strength:
    """Return the probability of an answer in a word."""
    if probability >= STRONG:
        return "strong"
    return "likely" if probability >= LIKELY else "weak"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a recall; hits that are not `relevant` are only the nearest.

    `confidence` is the probability that one of the first five hits answers the question.
    """

    question: str
    hits: tuple[Hit, ...]
    standing: tuple[Hit, ...] = ()
    tokens: int = 0
    considered: int = 0
    notice: str = ""
    fates: tuple[RecallTrace, ...] = ()
    relevant: bool = True
    confidence: float = 1.0

    @property
    def strength(self) -> Strength:
        """Return the confidence in a word."""
        return strength_of(self.confidence) if self.relevant else "none"

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer, with the places of the hits that say it, from 0."""

    text: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that an answer cites: its text, and who said it when and where.

    `title` is that of its session. `replaced_by` is the number of the citation that replaced it, if
    that is known; `note` says what replaced it when.
    """

    number: int
    id: str
    short_id: str
    text: str
    said_by: str
    created_at: datetime
    project: str = ""
    title: str = ""
    session_id: str = ""
    is_outdated: bool = False
    replaced_by: int | None = None
    note: str = ""
    type: ItemType = "message"


@dataclass(frozen=True, slots=True)
class AskResult:
    """One answer with citations; if nothing answers, the text says so and `nearest` is set.

    `written_by` is `offline` for quotations, or the provider and model of a chat.
    """

    question: str
    text: str
    citations: tuple[Citation, ...] = ()
    strength: Strength = "none"
    notice: str = ""
    written_by: str = "offline"
    nearest: Citation | None = None


@dataclass(frozen=True, slots=True)
class Title:
    """A fragment by title, without its content."""

    id: str
    title: str
    kind: str
    depth: int
    tokens: int
    children: int = 0
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class RememberResult:
    """The outcome of a request to remember something.

    `id` is that of a duplicate if the outcome is `known` or `updated`; `resembles` are the nearest
    other fragments. `corrected` is what it supersedes on request; it only `contradicts` what a more
    trusted origin said. `redacted` says that a secret in the text was not stored.
    """

    id: str
    outcome: Storing
    title: Title
    parent: Title | None = None
    resembles: tuple[Title, ...] = ()
    corrected: Title | None = None
    contradicts: Title | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole item, with its surroundings by title."""

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
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A subtree of fragments by title."""

    title: Title
    below: tuple[Outline, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of an item, and the numbers behind its strength."""

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
class FragmentEvent:
    """An event in the life of a fragment."""

    at: datetime
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A message or fragment on a timeline.

    `what` is the author or the kind; `session` is the title of its session.
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
    """What a revocation hides."""

    messages: int
    fragments: tuple[Title, ...] = ()
    distillations: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptCandidate:
    """A hit for a prompt, with the probability that it answers the prompt or matters for it.

    `cosine` is the similarity, `covered` the share of the prompt's words, weighted by rarity.
    """

    hit: Hit
    probability: float
    cosine: float
    covered: float


class InjectedItem(NamedTuple):
    """An item that a session was given, by number, with a fingerprint of its text."""

    n: int
    digest: int


@dataclass(frozen=True, slots=True)
class Injection:
    """A text for a prompt, with the ids of its items; empty if there is nothing to inject."""

    text: str = ""
    ids: tuple[str, ...] = ()
    tokens: int = 0
    given: tuple[InjectedItem, ...] = ()
    """The items that the session has received with this text."""


@dataclass(frozen=True, slots=True)
class PastSession:
    """A former session: its goal, outcome, open work, and what was said last."""

    id: str
    at: datetime
    goal: str
    outcome: Outcome = "unknown"
    left: str = ""
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What was done before a similar error was gone."""

    id: str
    at: datetime
    did: str


@dataclass(frozen=True, slots=True)
class StandingInstruction:
    """A rule of the person, word for word; `number` tells those of one message apart.

    A `suggested` one may be a rule and is given to no agent as one.
    """

    id: str
    number: int
    text: str
    state: InstructionState
    created_at: datetime
    type: ItemType = "message"
    project_id: str = ""
    session_id: str = ""
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True)
class SessionBriefing:
    """What may be injected at the start of a session."""

    standing: tuple[Hit, ...] = ()
    past: tuple[PastSession, ...] = ()
    roots: tuple[tuple[str, datetime, str], ...] = ()
    suggested: tuple[StandingInstruction, ...] = ()
    work: tuple[OpenWork, ...] = ()
    handoffs: tuple[Handoff, ...] = ()


@dataclass(frozen=True, slots=True)
class Remedies:
    """Fragments about an error, and what fixed similar ones."""

    hits: tuple[Hit, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """Return their texts by id."""
        texts = {hit.id: hit.text for hit in self.hits}
        return texts | {remedy.id: remedy.did for remedy in self.remedies}

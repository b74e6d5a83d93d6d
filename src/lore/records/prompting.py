"""What is put into a prompt that did not ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from lore.records.answers import Hit
from lore.records.kinds import Outcome


@dataclass(frozen=True, slots=True)
class Fit:
    """A hit for a prompt, with the numbers that tell whether it clearly concerns it.

    `cosine` is how near they are in meaning, `rarity` the weight of the words that both have, the
    rare ones weighing most, and `covered` the share of the prompt's weight that this is.
    """

    hit: Hit
    cosine: float
    rarity: float
    covered: float
    age_days: float


class Given(NamedTuple):
    """An item that a session was given, by its number, and a digest of its words."""

    n: int
    digest: int


@dataclass(frozen=True, slots=True)
class Injection:
    """A text for a prompt, with the ids of the items it tells; nothing, if the text is empty."""

    text: str = ""
    ids: tuple[str, ...] = ()
    tokens: int = 0
    given: tuple[Given, ...] = ()
    """What a session has had once it has this."""


@dataclass(frozen=True, slots=True)
class Past:
    """A former session in short: what it was for, how it ended, and what was left open."""

    id: str
    at: datetime
    goal: str
    outcome: Outcome = "unknown"
    left: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What was done before an error like the one at hand was gone."""

    id: str
    at: datetime
    did: str


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a session may be told when it begins."""

    standing: tuple[Hit, ...] = ()
    past: tuple[Past, ...] = ()
    roots: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Remedies:
    """What is known of an error: fragments about it, and what was done about it before."""

    hits: tuple[Hit, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """Return what each of them says, by id."""
        told = {hit.id: hit.text for hit in self.hits}
        return told | {remedy.id: remedy.did for remedy in self.remedies}

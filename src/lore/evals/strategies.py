"""Strategies: the ways to make the prompts of a session that are compared with each other.

Each is asked for the prompt of every request in turn. What they make is counted in pieces that a
provider caches; answers cost the same in all of them and are left out, but not those that only a
strategy itself asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple, Protocol

from lore.context.annotating import MOST_CHARS
from lore.context.breakpoints import PREFIX, breakpoints
from lore.context.layers import Room
from lore.context.planning import Terms, plan
from lore.context.sizing import Measure
from lore.context.tiers import MADE, plan_tiers
from lore.evals.caching import Piece
from lore.evals.long_talks import Talk
from lore.memory.composing import condense
from lore.memory.costing import Economy, Rule, SoFar, foresee
from lore.records.dialogues import Dialogue, Distilled, Entry, ModelPrice, Pins, Plan

COMPACTED_AT = 0.835
"""Where Claude Code compacts: 200 K less 20 K for the answer and 13 K to spare are 167 K."""

COMPACTED_TOKENS = 4_000
"""What it writes then. Recorded ones are kept up to 1 K only, and all but few reach that."""

_ACKNOWLEDGED_TOKENS = 40
"""What stands around the distillations: a heading, and a word of the assistant."""


class Moment(NamedTuple):
    """A request: what the client sends, when, and whether the cache has expired by then."""

    sent: Dialogue
    at_s: float
    cold: bool
    known: tuple[Distilled, ...]


class Prompt(NamedTuple):
    """What is sent: its pieces, which entries of the dialogue it has, and what else was asked."""

    pieces: tuple[Piece, ...]
    plan: Plan
    asked: tuple[Piece, ...] = ()
    """What was sent before it by the strategy itself."""
    written_tokens: int = 0
    """What was written in answer to that."""


class Strategy(Protocol):
    """A way to make prompts; it remembers what it did."""

    def prompt(self, moment: Moment) -> Prompt:
        """Return the prompt of the next request."""
        ...


def pieces_of(sent: Dialogue, made: Plan, measure: Measure) -> tuple[Piece, ...]:
    """Return a planned prompt in the pieces of which a cache consists."""
    marks = breakpoints(sent, made)
    short = measure.of_chars(MOST_CHARS)
    found: list[Piece] = []
    if sent.fixed_chars:
        found.append(Piece("system and tools", measure.of_chars(sent.fixed_chars), marked=True))
    for number, one in enumerate(made.prefix):
        is_last = number == len(made.prefix) - 1
        marked = is_last and PREFIX in marks
        about = _ACKNOWLEDGED_TOKENS if is_last else 0
        found.append(Piece(f"distillation {one.id}", one.tokens + about, marked=marked))
    for number in range(made.start, len(sent.entries)):
        entry = sent.entries[number]
        hidden = _annotated(entry, made.annotated)
        tokens = measure.of_entry(entry) - sum(
            measure.of_block(block) - short for block in entry.blocks if block.call_id in hidden
        )
        key = f"{entry.key} {' '.join(hidden)}"
        found.append(Piece(key, tokens, len(entry.blocks), number in marks))
    return tuple(found)


def _annotated(entry: Entry, annotated: frozenset[str]) -> tuple[str, ...]:
    results = (block.call_id for block in entry.blocks if block.kind == "result")
    return tuple(id_ for id_ in results if id_ in annotated)


@dataclass(slots=True)
class FullContext:
    """Everything, as if the window were large enough for it."""

    measure: Measure

    def prompt(self, moment: Moment) -> Prompt:
        """Return the whole dialogue."""
        whole = Plan(0, Pins())
        return Prompt(pieces_of(moment.sent, whole, self.measure), whole)


@dataclass(slots=True)
class Compaction:
    """The agent's own: when the window is nearly full, all becomes one summary."""

    measure: Measure
    window_tokens: int
    made: Plan = field(default_factory=lambda: Plan(0, Pins()))

    def prompt(self, moment: Moment) -> Prompt:
        """Return the summary so far and what came after it, or make a new one first."""
        sent = moment.sent
        pieces = pieces_of(sent, self.made, self.measure)
        if sum(piece.tokens for piece in pieces) <= COMPACTED_AT * self.window_tokens:
            self.made = replace(self.made, busts=False)
            return Prompt(pieces, self.made)
        until = len(sent.entries) - 1
        told = [one.text for one in moment.known if not one.generation and one.until <= until]
        text = condense(told, COMPACTED_TOKENS)
        compacted = Distilled(f"compaction {until}", text, COMPACTED_TOKENS, until, 1)
        self.made = Plan(1, Pins(), until, (compacted,), busts=True, why="fit")
        after = pieces_of(sent, self.made, self.measure)
        return Prompt(after, self.made, asked=pieces, written_tokens=COMPACTED_TOKENS)


@dataclass(slots=True)
class Gradient:
    """Layers, by the rule of the seeds or over the horizon."""

    measure: Measure
    price: ModelPrice
    economy: Economy
    pins: Pins = field(default_factory=Pins)
    times_s: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def prompt(self, moment: Moment) -> Prompt:
        """Return what the planner of the product makes of the dialogue."""
        gaps = [after - before for before, after in pairwise(self.times_s)]
        grown = [after - before for before, after in pairwise(self.sizes)]
        outlook = foresee(len(self.times_s), gaps_s=gaps, grown_tokens=grown)
        so_far = SoFar(self.measure, outlook, calibrated=bool(self.times_s))
        fixed_chars = moment.sent.fixed_chars
        terms = self.economy.terms(self.price, so_far, fixed_chars=fixed_chars, cold=moment.cold)
        made = plan(moment.sent, self.pins, moment.known, terms)
        self.pins = made.pins
        self.times_s.append(moment.at_s)
        self.sizes.append(sum(self.measure.of_entry(one) for one in moment.sent.entries))
        return Prompt(pieces_of(moment.sent, made, self.measure), made)


@dataclass(slots=True)
class Tiered:
    """Tiers of 50, 30 and 20 percent from 70 percent of the window on."""

    measure: Measure
    price: ModelPrice
    pins: Pins = field(default_factory=Pins)
    made: dict[str, Distilled] = field(default_factory=dict)

    def prompt(self, moment: Moment) -> Prompt:
        """Return the tiers of the dialogue."""
        terms = Terms(Room(self.price.window_tokens), self.measure, cold=moment.cold)
        known = {one.id: one for one in (*moment.known, *self.made.values())}
        made = plan_tiers(moment.sent, self.pins, tuple(known.values()), terms, condense=condense)
        self.pins = made.pins
        self.made |= {one.id: one for one in made.prefix if one.id.startswith(MADE)}
        return Prompt(pieces_of(moment.sent, made, self.measure), made)


STRATEGIES = ("full", "compaction", "tiered", "gradient_seed", "gradient_horizon")


def open_strategy(name: str, talk: Talk, price: ModelPrice) -> Strategy:
    """Return a strategy at the beginning of a session."""
    measure = Measure(talk.tokens_per_char)
    if name == "full":
        return FullContext(measure)
    if name == "compaction":
        return Compaction(measure, price.window_tokens)
    if name == "tiered":
        return Tiered(measure, price)
    rule: Rule = "seed" if name == "gradient_seed" else "horizon"
    return Gradient(measure, price, Economy(rule))

"""Bust or continue, by what the rest of the session is expected to cost.

A turn is one request and its response. Three things are foreseen: how many turns are still to
come, by how much a prompt grows in each, and how many of them find the cache expired. Then two
ways are compared: compress now, or read the whole prompt for some more turns and compress after
these. A bust in this sum always stands for the cycle that it begins: the prompt grows again, and
will be compressed again. A turn that finds the cache expired is one at which compressing costs
nothing, so that who expects many of them waits for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lore.budget.caps import LEAST_TOKENS

if TYPE_CHECKING:
    from lore.records.dialogues import ModelPrice

LIFETIME_S = 300.0
"""How long a provider keeps what it has cached, from the last time that it was read."""

LONG_LIFETIME_S = 3_600.0
"""The same for what was written at the higher price."""

USUAL_TURNS = 68.0
"""Turns that are still to come in 284 recorded coding sessions: 66 to 70 on average after 1, 10,
40 and 80 turns alike. What has no age is geometric, and so the sums below have a closed form."""

USUAL_COLD_SHARE = 0.03
"""Turns of these sessions that came more than five minutes after the one before."""

USUAL_LONG_COLD_SHARE = 0.004
"""Those that came more than an hour after it."""

USUAL_GROWTH_TOKENS = 1_000
"""By how much a prompt grows in a turn: median 500, mean 1,700 in 9 recorded sessions of an
agent."""

_SESSIONS_OF_PRIOR = 8
"""The usual counts as much as so many sessions of this project that lasted longer than this."""

_GAPS_OF_PRIOR = 60
"""The usual counts as much as so many gaps: two of them would be longer than five minutes."""

_GAPS_OF_PROJECT = 200
"""What a project's gaps count for at most, so that those of the session itself soon prevail."""

_TURNS_OF_PRIOR = 10
"""The usual growth counts as much as so many turns."""

_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1_024)
"""Numbers of turns that are tried: the sum is flat around its least, a finer grid finds no more."""

_MOST_TURNS = 10_000.0
"""Beyond that the sums lose their last digits, and no session is so long."""

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is foreseen of a session."""

    turns: float = USUAL_TURNS
    """How many turns are still to come after this one."""
    cold_share: float = USUAL_COLD_SHARE
    """How many of them find the cache expired."""
    growth_tokens: float = USUAL_GROWTH_TOKENS
    """By how much each makes the prompt longer."""
    lifetime_s: float = LIFETIME_S
    """How long the cache lives; what lives longer is written at the higher price."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Whether to bust now, and what both ways cost from this turn on.

    What is the same for both is left out: answers, and the first write of what is new.
    """

    busts: bool
    bust_usd: float
    continue_usd: float
    wait_turns: int
    """After how many turns a bust would be best, if not now."""
    outlook: Outlook


def foresee(
    turns_so_far: int,
    *,
    gaps_s: Sequence[float] = (),
    grown_tokens: Sequence[int] = (),
    project_lengths: Sequence[int] = (),
    project_gaps_s: Sequence[float] = (),
    lifetime_s: float = LIFETIME_S,
) -> Outlook:
    """Return what to expect of a session, by its own past and that of its project.

    `gaps_s` are the times between its turns and `grown_tokens` by how much its prompt grew in
    each; `project_lengths` are the turns of the sessions of the project that have ended.
    """
    return Outlook(
        remaining_turns(turns_so_far, project_lengths),
        cold_share(gaps_s, project_gaps_s, lifetime_s),
        growth(grown_tokens),
        lifetime_s,
    )


def remaining_turns(turns_so_far: int, lengths: Sequence[int]) -> float:
    """Return how many turns are to come: what longer sessions still had, and the usual."""
    left = [length - turns_so_far for length in lengths if length > turns_so_far]
    return (sum(left) + _SESSIONS_OF_PRIOR * USUAL_TURNS) / (len(left) + _SESSIONS_OF_PRIOR)


def cold_share(
    gaps_s: Sequence[float], project_gaps_s: Sequence[float], lifetime_s: float = LIFETIME_S
) -> float:
    """Return which share of turns comes after the cache has expired."""
    usual = USUAL_LONG_COLD_SHARE if lifetime_s > LIFETIME_S else USUAL_COLD_SHARE
    weight = min(1.0, _GAPS_OF_PROJECT / len(project_gaps_s)) if project_gaps_s else 0.0
    own, others = _over(gaps_s, lifetime_s), _over(project_gaps_s, lifetime_s)
    seen = len(gaps_s) + weight * len(project_gaps_s)
    return (own + weight * others + _GAPS_OF_PRIOR * usual) / (seen + _GAPS_OF_PRIOR)


def growth(grown_tokens: Sequence[int]) -> float:
    """Return by how much a prompt grows in a turn; a shortened history does not count."""
    grown = [tokens for tokens in grown_tokens if tokens >= 0]
    return (sum(grown) + _TURNS_OF_PRIOR * USUAL_GROWTH_TOKENS) / (len(grown) + _TURNS_OF_PRIOR)


def decide(
    current_tokens: int,
    compressed_tokens: int,
    price: ModelPrice,
    outlook: Outlook,
    *,
    cold: bool = False,
    least_tokens: int = LEAST_TOKENS,
) -> Horizon:
    """Compare a bust now with the best later one, over all turns that are still expected.

    `cold`: the cache has expired, so that either way the prompt is written. What no longer fits
    into the window of the model is compressed anyway. Each prompt has the price of its length now.
    """
    rates, most_tokens = _rates(price.at(current_tokens), outlook), price.window_tokens
    then = _rates(price.at(compressed_tokens), outlook)
    bust_usd = min(
        then.cycle(compressed_tokens, turns)
        for turns in _tried(compressed_tokens, most_tokens, outlook.growth_tokens)
    )
    now_usd = current_tokens * (rates.write if cold else rates.read)
    continue_usd, wait_turns = min(
        (now_usd + rates.reading(current_tokens, turns) + rates.bust(turns) * bust_usd, turns)
        for turns in _tried(current_tokens, most_tokens, outlook.growth_tokens)
    )
    allowed = current_tokens > least_tokens
    busts = allowed and compressed_tokens < current_tokens and bust_usd < continue_usd
    return Horizon(busts, bust_usd, continue_usd, 0 if busts else wait_turns, outlook)


@dataclass(frozen=True, slots=True)
class _Rates:
    """What a token of a prompt costs by what becomes of it, and how likely a turn comes at all."""

    read: float
    write: float
    survival: float
    warm: float
    """How likely a turn comes, and all up to it found the cache warm: this to the power of it."""
    growth_tokens: float

    def reading(self, tokens: int, turns: int) -> float:
        """Return what the turns from the next one up to before `turns` cost while all is warm.

        That is the sum of w^i (tokens + i growth) for i in 1 … turns - 1.
        """
        w, last = self.warm, turns - 1
        weights = w * (1 - w**last) / (1 - w)
        ordinals = w * (1 - (last + 1) * w**last + last * w ** (last + 1)) / (1 - w) ** 2
        return self.read * (tokens * weights + self.growth_tokens * ordinals)

    def bust(self, turns: int) -> float:
        """Return how likely a bust comes: at a cold turn before `turns`, else then."""
        q, w = self.survival, self.warm
        return (q - w) * (1 - w ** (turns - 1)) / (1 - w) + q * w ** (turns - 1)

    def cycle(self, compressed_tokens: int, turns: int) -> float:
        """Return what all is going to cost if every so many turns there is a bust, from now on."""
        once = compressed_tokens * self.write + self.reading(compressed_tokens, turns)
        return once / (1 - self.bust(turns))


def _rates(price: ModelPrice, outlook: Outlook) -> _Rates:
    is_long = outlook.lifetime_s > LIFETIME_S
    read = price.cache_read_usd / _MILLION
    write = (price.cache_write_1h_usd if is_long else price.cache_write_usd) / _MILLION
    turns = min(outlook.turns, _MOST_TURNS)
    survival = turns / (turns + 1)
    warm = survival * (1 - outlook.cold_share)
    return _Rates(read, write, survival, warm, outlook.growth_tokens)


def _tried(tokens: int, most_tokens: int, growth_tokens: float) -> Iterator[int]:
    """Yield after how many turns a bust may come: as long as the prompt fits, and at least one."""
    yield 1
    for turns in _STEPS[1:]:
        if tokens + (turns - 1) * growth_tokens > most_tokens:
            return
        yield turns


def _over(gaps_s: Sequence[float], lifetime_s: float) -> int:
    return sum(gap > lifetime_s for gap in gaps_s)

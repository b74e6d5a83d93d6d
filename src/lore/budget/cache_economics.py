"""Cache economics: decide when to rewrite a prompt instead of reading it from the provider's cache.

There are two rules; the setting `context.rule` chooses one. The next-turn rule (`seed`) compares
the cost of the next turn only: write a compressed prompt, or read the whole one again.

The break-even rule (`horizon`, the default) estimates how many turns are still to come, by how much
the prompt grows in each, and how many find the cache expired. It compares two options: compress
now, or read the whole prompt for some more turns and compress then. The cost of a bust includes the
cycle that it starts: the prompt grows again and is compressed again. A turn that finds the cache
expired can compress at no extra cost, so a session that expects many of them waits for one. What
the provider reports goes before the price list: tokens that it did not read from its cache so far
are expected at their full price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lore.context.layers import PromptRoom, TokenMeasure
from lore.context.planner import PlanTerms
from lore.records.gateway import Layer, ModelPrice

TARGET_USD_PER_TURN = 0.10
"""A hundred turns a day then cost $10 in cache reads."""

MIN_CAP_TOKENS = 40_000
"""Enough for the current work, whatever the model costs."""

FIRST_TURN_SHARE = 0.7
"""The first turn writes its whole prompt, and may be the last one."""

TURNS_WITHOUT_WRITES = 3
"""After this many such turns, assume that the provider does not charge for cache writes or does not
cache."""

SHARE_WITHOUT_WRITES = 0.65
"""There is no expensive write to postpone then.

The rest of the window is left for long tool outputs."""

_MILLION = 1_000_000


def compute_layer_0_cap(
    price: ModelPrice,
    *,
    target_usd_per_turn: float = TARGET_USD_PER_TURN,
    pinned_tokens: int = 0,
    calibrated: bool = True,
    turns_without_writes: int = 0,
    billed_read_usd: float | None = None,
) -> int:
    """Return the maximum number of tokens of a prompt at layer 0.

    A target of 0 means the whole window of the model. `billed_read_usd` is the measured cost of a
    million tokens of the known prefix, if there is one.
    """
    most_tokens = price.window_tokens
    if pinned_tokens:
        return min(pinned_tokens, most_tokens)
    if not target_usd_per_turn:
        return most_tokens
    if turns_without_writes >= TURNS_WITHOUT_WRITES:
        most_tokens = int(most_tokens * SHARE_WITHOUT_WRITES)
    read_usd = price.cache_read_usd if billed_read_usd is None else billed_read_usd
    affordable = target_usd_per_turn * _MILLION / read_usd if read_usd else float(most_tokens)
    usual = affordable
    for start, longer in price.longer:
        if affordable > start and longer.cache_read_usd:
            # A higher price for long prompts applies from the first token on.
            beyond = usual * price.cache_read_usd / longer.cache_read_usd
            affordable = max(float(start), min(affordable, beyond))
    cap = max(affordable, float(MIN_CAP_TOKENS))
    return int(min(cap, most_tokens) * (1.0 if calibrated else FIRST_TURN_SHARE))


THRESHOLDS = ((200_000, 0.0), (500_000, 0.85))
"""Pairs of a prompt size and the share of the cost of continuing that a bust must stay below.

Models are at their best up to 200 K tokens, and still good up to 500 K."""

THRESHOLD_BEYOND = 1.0


@dataclass(frozen=True, slots=True)
class OneTurnDecision:
    """Whether to bust, and the cost of both options in the next turn."""

    busts: bool
    bust_usd: float
    continue_usd: float
    threshold: float


def threshold_for(current_tokens: int) -> float:
    """Return the share of the cost of continuing that a bust must stay below at this size."""
    for most_tokens, threshold in THRESHOLDS:
        if current_tokens <= most_tokens:
            return threshold
    return THRESHOLD_BEYOND


def decide_for_one_turn(
    current_tokens: int, compressed_tokens: int, price: ModelPrice
) -> OneTurnDecision:
    """Compare the cost of writing a compressed prompt with reading the whole one again."""
    threshold = threshold_for(current_tokens)
    bust_usd = compressed_tokens * price.at(compressed_tokens).cache_write_usd / _MILLION
    continue_usd = current_tokens * price.at(current_tokens).cache_read_usd / _MILLION
    busts = bust_usd < continue_usd * threshold
    return OneTurnDecision(busts, bust_usd, continue_usd, threshold)


CACHE_TTL_S = 300.0
"""Time to live of a provider's cache entry, counted from its last read."""

LONG_CACHE_TTL_S = 3_600.0
"""Time to live of an entry that was written at the higher price."""

DEFAULT_TURNS = 68.0
"""Remaining turns in 284 recorded coding sessions:

66 to 70 on average, after 1, 10, 40 and 80 turns alike. The distribution is memoryless (geometric),
so the sums below have a closed form."""

DEFAULT_COLD_SHARE = 0.03
"""Share of turns in these sessions that came more than five minutes after the previous one."""

DEFAULT_LONG_COLD_SHARE = 0.004
"""Share of turns that came more than an hour after the previous one."""

DEFAULT_GROWTH_TOKENS = 1_000
"""Growth of a prompt per turn: median 500, mean 1,700 in 9 recorded agent sessions."""

_SESSIONS_OF_PRIOR = 8
"""The prior weighs as much as this many longer sessions of the project."""

_GAPS_OF_PRIOR = 60
"""The prior weighs as much as this many gaps; two of them would exceed five minutes."""

_GAPS_OF_PROJECT = 200
"""Maximum weight of the project's gaps, so that the gaps of the session itself soon prevail."""

_TURNS_OF_PRIOR = 10
"""The default growth weighs as much as this many turns."""

_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1_024)
"""Waiting times in turns to compare.

The cost is flat around its minimum: a finer grid gains nothing."""

_MAX_TURNS = 10_000.0
"""Beyond this the sums lose precision; no session is that long."""


@dataclass(frozen=True, slots=True)
class SessionForecast:
    """What to expect of the rest of a session."""

    turns: float = DEFAULT_TURNS
    """Expected number of turns after this one."""
    cold_share: float = DEFAULT_COLD_SHARE
    """Share of them that finds the cache expired."""
    growth_tokens: float = DEFAULT_GROWTH_TOKENS
    """Growth of the prompt per turn."""
    lifetime_s: float = CACHE_TTL_S
    """Time to live of the cache; a longer one is written at the higher price."""
    cached_share: float = 1.0
    """Share of a known prefix that the provider reads from its cache while that is warm."""
    has_writes: bool = True
    """Whether new text is written to the cache; without, it has the usual price."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Whether to bust now, and the cost of both options from this turn on.

    Costs that both options share are left out: responses, and the first write of new text.
    """

    busts: bool
    bust_usd: float
    continue_usd: float
    wait_turns: int
    """The best number of turns to wait before a bust, 0 for now."""
    outlook: SessionForecast


def forecast_session(
    turns_so_far: int,
    *,
    gaps_s: Sequence[float] = (),
    grown_tokens: Sequence[int] = (),
    project_lengths: Sequence[int] = (),
    project_gaps_s: Sequence[float] = (),
    lifetime_s: float = CACHE_TTL_S,
    cached_share: float = 1.0,
) -> SessionForecast:
    """Return a forecast for a session, from its own history and that of its project.

    `gaps_s` are the times between its turns, `grown_tokens` the growth of its prompt in each turn,
    and `project_lengths` the number of turns of the project's finished sessions. `cached_share` is
    what the provider reported.
    """
    return SessionForecast(
        expected_turns(turns_so_far, project_lengths),
        expected_cold_share(gaps_s, project_gaps_s, lifetime_s),
        expected_growth(grown_tokens),
        lifetime_s,
        cached_share,
    )


def expected_turns(turns_so_far: int, lengths: Sequence[int]) -> float:
    """Return the expected number of remaining turns, from longer sessions and the prior."""
    remaining = [length - turns_so_far for length in lengths if length > turns_so_far]
    return (sum(remaining) + _SESSIONS_OF_PRIOR * DEFAULT_TURNS) / (
        len(remaining) + _SESSIONS_OF_PRIOR
    )


def expected_cold_share(
    gaps_s: Sequence[float], project_gaps_s: Sequence[float], lifetime_s: float = CACHE_TTL_S
) -> float:
    """Return the share of turns that come after the cache has expired."""
    usual = DEFAULT_LONG_COLD_SHARE if lifetime_s > CACHE_TTL_S else DEFAULT_COLD_SHARE
    weight = min(1.0, _GAPS_OF_PROJECT / len(project_gaps_s)) if project_gaps_s else 0.0
    own, others = _count_over(gaps_s, lifetime_s), _count_over(project_gaps_s, lifetime_s)
    weighted_count = len(gaps_s) + weight * len(project_gaps_s)
    return (own + weight * others + _GAPS_OF_PRIOR * usual) / (weighted_count + _GAPS_OF_PRIOR)


def expected_growth(grown_tokens: Sequence[int]) -> float:
    """Return the expected growth of a prompt per turn; ignore turns that shortened the history."""
    grown = [tokens for tokens in grown_tokens if tokens >= 0]
    return (sum(grown) + _TURNS_OF_PRIOR * DEFAULT_GROWTH_TOKENS) / (len(grown) + _TURNS_OF_PRIOR)


def decide_break_even(
    current_tokens: int,
    compressed_tokens: int,
    price: ModelPrice,
    outlook: SessionForecast,
    *,
    cold: bool = False,
    least_tokens: int = MIN_CAP_TOKENS,
) -> BreakEven:
    """Compare a bust now with the best later bust, over all expected turns.

    With `cold`, the cache has expired and the prompt is written in any case. A prompt that exceeds
    the window of the model is compressed anyway. Each prompt has the price of its current length.
    """
    rates, most_tokens = _rates(price.at(current_tokens), outlook), price.window_tokens
    compressed_rates = _rates(price.at(compressed_tokens), outlook)
    bust_usd = min(
        compressed_rates.cycle(compressed_tokens, turns)
        for turns in _candidate_turns(compressed_tokens, most_tokens, outlook.growth_tokens)
    )
    now_usd = current_tokens * (rates.write if cold else rates.read)
    continue_usd, wait_turns = min(
        (now_usd + rates.reading(current_tokens, turns) + rates.bust(turns) * bust_usd, turns)
        for turns in _candidate_turns(current_tokens, most_tokens, outlook.growth_tokens)
    )
    allowed = current_tokens > least_tokens
    busts = allowed and compressed_tokens < current_tokens and bust_usd < continue_usd
    return BreakEven(busts, bust_usd, continue_usd, 0 if busts else wait_turns, outlook)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Cost per token, and the probability of further turns."""

    read: float
    write: float
    survival: float
    warm: float
    """Probability per turn that the turn comes and that the cache is warm up to it."""
    growth_tokens: float

    def reading(self, tokens: int, turns: int) -> float:
        """Return the cost of all turns before `turns`, as long as the cache stays warm.

        That is the sum of w^i (tokens + i growth) for i in 1 … turns - 1.
        """
        w, last = self.warm, turns - 1
        weights = w * (1 - w**last) / (1 - w)
        ordinals = w * (1 - (last + 1) * w**last + last * w ** (last + 1)) / (1 - w) ** 2
        return self.read * (tokens * weights + self.growth_tokens * ordinals)

    def bust(self, turns: int) -> float:
        """Return the probability of a bust: at a cold turn before `turns`, else at `turns`."""
        q, w = self.survival, self.warm
        return (q - w) * (1 - w ** (turns - 1)) / (1 - w) + q * w ** (turns - 1)

    def cycle(self, compressed_tokens: int, turns: int) -> float:
        """Return the total cost if a bust follows every `turns` turns from now on."""
        once = compressed_tokens * self.write + self.reading(compressed_tokens, turns)
        return once / (1 - self.bust(turns))


def _rates(price: ModelPrice, outlook: SessionForecast) -> _Rates:
    is_long = outlook.lifetime_s > CACHE_TTL_S
    written_usd = price.cache_write_1h_usd if is_long else price.cache_write_usd
    write = (written_usd if outlook.has_writes else price.input_usd) / _MILLION
    cached = outlook.cached_share * price.cache_read_usd / _MILLION
    read = cached + (1 - outlook.cached_share) * write
    turns = min(outlook.turns, _MAX_TURNS)
    survival = turns / (turns + 1)
    warm = survival * (1 - outlook.cold_share)
    return _Rates(read, write, survival, warm, outlook.growth_tokens)


def _candidate_turns(tokens: int, most_tokens: int, growth_tokens: float) -> Iterator[int]:
    """Yield the numbers of turns after which a bust is possible, as long as the prompt fits."""
    yield 1
    for turns in _STEPS[1:]:
        if tokens + (turns - 1) * growth_tokens > most_tokens:
            return
        yield turns


def _count_over(gaps_s: Sequence[float], lifetime_s: float) -> int:
    return sum(gap > lifetime_s for gap in gaps_s)


KEEP_TOKENS = 10_000
"""The break-even rule cuts a window to this size, or to twice as much where the turn before the
current one needs it; the prefix may be as long. In a replayed session of 353 K tokens this costs
11 % of full context (20 K: 16 %, 40 K: 26 %), with the same evidence available."""

DISTILL_SHARE = 0.35
"""Share of a small window from which a session is distilled: half of where tiers begin, so that
distillations are there once the window has to be cut."""

MIN_CUT_FACTOR = 2
"""A prompt shorter than this multiple of `keep_tokens` is left alone, even if the cache is cold."""

Rule = Literal["horizon", "seed"]


@dataclass(frozen=True, slots=True)
class SessionCosts:
    """The measured token ratio and the forecast of a session."""

    measure: TokenMeasure = field(default_factory=TokenMeasure)
    forecast: SessionForecast = field(default_factory=SessionForecast)
    calibrated: bool = True
    turns_without_writes: int = 0
    billed_read_usd: float | None = None

    def expected(self) -> SessionForecast:
        """Return the forecast, with the cache writes that the provider reported."""
        has_writes = self.turns_without_writes < TURNS_WITHOUT_WRITES
        return replace(self.forecast, has_writes=has_writes)


@dataclass(frozen=True, slots=True)
class CostPolicy:
    """The rule by which prompts are shortened to save money."""

    rule: Rule = "horizon"
    target_usd_per_turn: float = TARGET_USD_PER_TURN
    max_layer0_tokens: int = 0
    keep_tokens: int = KEEP_TOKENS

    def distill_from_tokens(self, window_tokens: int) -> int:
        """Return the size of a prompt from which its session needs distillations."""
        return min(self.keep_tokens, int(DISTILL_SHARE * window_tokens))

    def terms(
        self,
        price: ModelPrice,
        costs: SessionCosts,
        *,
        fixed_chars: int = 0,
        knowledge_tokens: int = 0,
        cold: bool = False,
        min_layer: Layer = 0,
    ) -> PlanTerms:
        """Return the terms for planning the next prompt; `fixed_chars` precede its first entry."""
        cap_tokens = compute_layer_0_cap(
            price,
            target_usd_per_turn=self.target_usd_per_turn,
            pinned_tokens=self.max_layer0_tokens,
            calibrated=costs.calibrated,
            turns_without_writes=costs.turns_without_writes,
            billed_read_usd=costs.billed_read_usd,
        )
        if self.rule == "seed":
            room = PromptRoom(price.window_tokens, knowledge_tokens)
            cost = _OneTurnRule(price, cap_tokens)
            return PlanTerms(room, costs.measure, cost, cold=cold, min_layer=min_layer)
        before = knowledge_tokens + costs.measure.of_chars(fixed_chars)
        least_tokens = before + MIN_CUT_FACTOR * self.keep_tokens
        return PlanTerms(
            PromptRoom(price.window_tokens, knowledge_tokens, self.keep_tokens),
            costs.measure,
            _BreakEvenRule(price, cap_tokens, costs.expected(), least_tokens),
            cold=cold,
            min_layer=min_layer,
        )


@dataclass(frozen=True, slots=True)
class _OneTurnRule:
    """Apply the cap of layer 0, and compare the cost of the next turn only."""

    price: ModelPrice
    cap_tokens: int

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Return whether to replace a prompt of a layer by a shorter one."""
        del cold
        if not layer and now_tokens > self.cap_tokens:
            return True
        return decide_for_one_turn(now_tokens, then_tokens, self.price).busts


@dataclass(frozen=True, slots=True)
class _BreakEvenRule:
    """Apply the cap of layer 0, and compare the cost of all expected turns."""

    price: ModelPrice
    cap_tokens: int
    outlook: SessionForecast
    least_tokens: int

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Return whether to replace a prompt of a layer by a shorter one."""
        if not layer and now_tokens > self.cap_tokens:
            return True
        if now_tokens <= self.least_tokens:
            return False
        return decide_break_even(
            now_tokens,
            then_tokens,
            self.price,
            self.outlook,
            cold=cold,
            least_tokens=self.least_tokens,
        ).busts

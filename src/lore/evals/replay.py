"""Replay a session request by request, with one strategy, one model and a simulated cache.

The cache works like Anthropic's: a prompt is cached up to each breakpoint until its TTL expires,
and a lookup goes back a number of blocks from each breakpoint. Providers that cache automatically
do so after every piece and charge nothing for writes. Responses cost the same under all strategies
and are left out.

Evidence is in a prompt if its message is there, or if one distillation contains every specific
(number, code name, path, quotation) that answer and message share and the question lacks, at least
one, and half of the answer's words. It is recalled if recall with its default budget shows the
message or a log line made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple, Protocol

from lore.budget import cache_economics
from lore.budget.cache_economics import CostPolicy, Rule, SessionCosts, forecast_session
from lore.context.layers import (
    LOOKBACK_BLOCKS,
    MAX_ANNOTATION_CHARS,
    PREFIX,
    PromptRoom,
    TokenMeasure,
    choose_breakpoints,
)
from lore.context.planner import TIER_ID_PREFIX, PlanTerms, plan_prompt, plan_tiers
from lore.evals.datasets import EvidenceQuestion, ReplaySession
from lore.gateway.session.prompt_composer import condense
from lore.memory import Memory
from lore.records import Hit
from lore.records.gateway import (
    Block,
    Dialogue,
    Distilled,
    Entry,
    ModelPrice,
    Plan,
    PromptState,
    TokenUse,
)
from lore.text import words

LEAST_TOKENS = 1_024
"""A shorter prefix is not cached."""

CACHE_TTL_S, LONG_CACHE_TTL_S = cache_economics.CACHE_TTL_S, cache_economics.LONG_CACHE_TTL_S

_PROMPTS = 8
"""Only the last prompts of a session can be read again."""


class CachedPiece(NamedTuple):
    """A part of a prompt that is cached as a whole: its key and size."""

    key: str
    tokens: int
    blocks: int = 1
    marked: bool = False
    """Whether a breakpoint follows it."""


class PrefixCache:
    """The prefix cache of a provider for one session."""

    def __init__(self, *, lifetime_s: float = CACHE_TTL_S, automatic: bool = False) -> None:
        self._lifetime_s = lifetime_s
        self._automatic = automatic
        self._sent: list[_SentPrompt] = []

    def send(self, pieces: Sequence[CachedPiece], at_s: float) -> TokenUse:
        """Return the usage of a prompt, and add it to the cache."""
        whole = frozenset(range(len(pieces)))
        ends = whole if self._automatic else frozenset(n for n in whole if pieces[n].marked)
        total = list(accumulate((piece.tokens for piece in pieces), initial=0))
        cached = frozenset(end for end in ends if total[end + 1] >= LEAST_TOKENS)
        hit, source = self._find(pieces, cached, at_s)
        read = total[hit + 1]
        written = max(0, total[max(cached, default=-1) + 1] - read)
        if source is not None:
            source.until_s = at_s + self._lifetime_s
        keys = tuple(piece.key for piece in pieces)
        alive = [one for one in self._sent if one.until_s >= at_s]
        self._sent = [*alive[-_PROMPTS:], _SentPrompt(keys, cached, at_s + self._lifetime_s)]
        fresh = total[-1] - read - written
        if self._lifetime_s > CACHE_TTL_S:
            return TokenUse(fresh, read, cache_write_1h_tokens=written)
        return TokenUse(fresh, read, written)

    def _find(
        self, pieces: Sequence[CachedPiece], ends: frozenset[int], at_s: float
    ) -> tuple[int, _SentPrompt | None]:
        """Return the last cached piece of a prompt, -1 if none is, and the prompt it is from."""
        looked_at = ends if self._automatic else _within_lookback(pieces, ends)
        best: tuple[int, _SentPrompt | None] = (-1, None)
        for sent in self._sent:
            if sent.until_s < at_s:
                continue
            same = _common_prefix(sent.keys, pieces)
            end = max((n for n in sent.ends if n < same and n in looked_at), default=-1)
            if end > best[0]:
                best = (end, sent)
        return best


@dataclass(slots=True)
class _SentPrompt:
    """A prompt in the cache: the pieces after which it is cached, and its expiry."""

    keys: tuple[str, ...]
    ends: frozenset[int]
    until_s: float


def _within_lookback(pieces: Sequence[CachedPiece], ends: Iterable[int]) -> set[int]:
    """Return the pieces within the lookback of a breakpoint."""
    pieces_in_reach: set[int] = set()
    for end in ends:
        blocks_left = LOOKBACK_BLOCKS
        for place in range(end, -1, -1):
            if blocks_left < 0:
                break
            pieces_in_reach.add(place)
            blocks_left -= pieces[place].blocks
    return pieces_in_reach


def _common_prefix(keys: Sequence[str], pieces: Sequence[CachedPiece]) -> int:
    """Return the number of equal pieces at the start of two prompts."""
    pairs = zip(keys, pieces, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1].key, pairs))


COMPACTION_SHARE = 0.835
"""Where Claude Code compacts: 200 K less 20 K for the response and a reserve of 13 K are 167 K."""

COMPACTION_TOKENS = 4_000
"""The size of its summary. Recorded ones are truncated at 1 K, which most of them reach."""

_PREFIX_OVERHEAD_TOKENS = 40
"""Text around the distillations: a heading, and an acknowledgement of the assistant."""


class RequestMoment(NamedTuple):
    """A request: its dialogue and time, and whether the cache has expired."""

    sent: Dialogue
    at_s: float
    cold: bool
    known: tuple[Distilled, ...]


class StrategyPrompt(NamedTuple):
    """A prompt: its pieces, its plan, and the strategy's own request."""

    pieces: tuple[CachedPiece, ...]
    plan: Plan
    asked: tuple[CachedPiece, ...] = ()
    """Pieces of the request that the strategy made before."""
    written_tokens: int = 0
    """Output tokens of that request."""


class Strategy(Protocol):
    """A stateful way to build prompts."""

    def prompt(self, moment: RequestMoment) -> StrategyPrompt:
        """Return the prompt of the next request."""
        ...


def pieces_of(sent: Dialogue, plan: Plan, measure: TokenMeasure) -> tuple[CachedPiece, ...]:
    """Return a planned prompt as cacheable pieces."""
    marks = choose_breakpoints(sent, plan)
    short = measure.of_chars(MAX_ANNOTATION_CHARS)
    pieces: list[CachedPiece] = []
    if sent.fixed_chars:
        pieces.append(
            CachedPiece("system and tools", measure.of_chars(sent.fixed_chars), marked=True)
        )
    for number, one in enumerate(plan.prefix):
        is_last = number == len(plan.prefix) - 1
        marked = is_last and PREFIX in marks
        about = _PREFIX_OVERHEAD_TOKENS if is_last else 0
        pieces.append(CachedPiece(f"distillation {one.id}", one.tokens + about, marked=marked))
    for number in range(plan.start, len(sent.entries)):
        entry = sent.entries[number]
        hidden = _annotated(entry, plan.annotated)
        tokens = measure.of_entry(entry) - sum(
            measure.of_block(block) - short for block in entry.blocks if block.call_id in hidden
        )
        key = f"{entry.key} {' '.join(hidden)}"
        pieces.append(CachedPiece(key, tokens, len(entry.blocks), number in marks))
    return tuple(pieces)


def _annotated(entry: Entry, annotated: frozenset[str]) -> tuple[str, ...]:
    results = (block.call_id for block in entry.blocks if block.kind == "result")
    return tuple(id_ for id_ in results if id_ in annotated)


@dataclass(slots=True)
class FullContext:
    """The whole dialogue, as if the window were unlimited."""

    measure: TokenMeasure

    def prompt(self, moment: RequestMoment) -> StrategyPrompt:
        """Return the whole dialogue."""
        whole = Plan(0, PromptState())
        return StrategyPrompt(pieces_of(moment.sent, whole, self.measure), whole)


@dataclass(slots=True)
class Compaction:
    """The agent's own compaction: when the window is nearly full, all becomes one summary."""

    measure: TokenMeasure
    window_tokens: int
    made: Plan = field(default_factory=lambda: Plan(0, PromptState()))

    def prompt(self, moment: RequestMoment) -> StrategyPrompt:
        """Return the last summary and what follows it, or make a new one first."""
        sent = moment.sent
        pieces = pieces_of(sent, self.made, self.measure)
        if sum(piece.tokens for piece in pieces) <= COMPACTION_SHARE * self.window_tokens:
            self.made = replace(self.made, busts=False)
            return StrategyPrompt(pieces, self.made)
        until = len(sent.entries) - 1
        texts = [one.text for one in moment.known if not one.generation and one.until <= until]
        text = condense(texts, COMPACTION_TOKENS)
        compacted = Distilled(f"compaction {until}", text, COMPACTION_TOKENS, until, 1)
        self.made = Plan(1, PromptState(), until, (compacted,), busts=True, why="fit")
        after = pieces_of(sent, self.made, self.measure)
        return StrategyPrompt(after, self.made, asked=pieces, written_tokens=COMPACTION_TOKENS)


@dataclass(slots=True)
class Gradient:
    """Layers, by the one-turn rule or the break-even rule."""

    measure: TokenMeasure
    price: ModelPrice
    economy: CostPolicy
    pins: PromptState = field(default_factory=PromptState)
    times_s: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def prompt(self, moment: RequestMoment) -> StrategyPrompt:
        """Return the prompt that the planner makes of the dialogue."""
        gaps = [after - before for before, after in pairwise(self.times_s)]
        grown = [after - before for before, after in pairwise(self.sizes)]
        outlook = forecast_session(len(self.times_s), gaps_s=gaps, grown_tokens=grown)
        so_far = SessionCosts(self.measure, outlook, calibrated=bool(self.times_s))
        fixed_chars = moment.sent.fixed_chars
        terms = self.economy.terms(self.price, so_far, fixed_chars=fixed_chars, cold=moment.cold)
        planned = plan_prompt(moment.sent, self.pins, moment.known, terms)
        self.pins = planned.state
        self.times_s.append(moment.at_s)
        self.sizes.append(sum(self.measure.of_entry(one) for one in moment.sent.entries))
        return StrategyPrompt(pieces_of(moment.sent, planned, self.measure), planned)


@dataclass(slots=True)
class Tiered:
    """Tiers of 50, 30 and 20 percent, from 70 percent of the window on."""

    measure: TokenMeasure
    price: ModelPrice
    pins: PromptState = field(default_factory=PromptState)
    made: dict[str, Distilled] = field(default_factory=dict)

    def prompt(self, moment: RequestMoment) -> StrategyPrompt:
        """Return the tiers of the dialogue."""
        terms = PlanTerms(PromptRoom(self.price.window_tokens), self.measure, cold=moment.cold)
        distilled = {one.id: one for one in (*moment.known, *self.made.values())}
        planned = plan_tiers(
            moment.sent, self.pins, tuple(distilled.values()), terms, condense=condense
        )
        self.pins = planned.state
        self.made |= {one.id: one for one in planned.prefix if one.id.startswith(TIER_ID_PREFIX)}
        return StrategyPrompt(pieces_of(moment.sent, planned, self.measure), planned)


STRATEGIES = ("full", "compaction", "tiered", "gradient_seed", "gradient_horizon")


def open_strategy(name: str, talk: ReplaySession, price: ModelPrice) -> Strategy:
    """Return a strategy at the start of a session."""
    measure = TokenMeasure(talk.tokens_per_char)
    if name == "full":
        return FullContext(measure)
    if name == "compaction":
        return Compaction(measure, price.window_tokens)
    if name == "tiered":
        return Tiered(measure, price)
    rule: Rule = "seed" if name == "gradient_seed" else "horizon"
    return Gradient(measure, price, CostPolicy(rule))


_SPECIFIC = re.compile(
    r"[\w./:#@%+-]*\d[\w./:#@%+-]*|[\w-]*[/._][\w./-]+|\b[a-z]+[A-Z]\w+|'[^']{3,80}'"
)
_EDGES = ".,:;'\"()"

_LEAST_CHARS = 3
"""A single digit is not specific."""

_WORDS = 0.5


@dataclass(frozen=True, slots=True)
class RememberedSession:
    """The message ids of a session in a memory, and its logs with the time when each was made."""

    ids: tuple[str, ...]
    logs: tuple[tuple[int, Distilled], ...]

    def known_at(self, entries: int) -> tuple[Distilled, ...]:
        """Return the logs that exist when a prompt has this many entries."""
        return tuple(log for since, log in self.logs if since <= entries)


def remember_session(memory: Memory, talk: ReplaySession) -> RememberedSession:
    """Capture and distill a session turn by turn, as if it were live."""
    ids: list[str] = []
    logs: list[tuple[int, Distilled]] = []
    for number in turn_ends(talk):
        ids += memory.capture(
            talk.name, talk.messages[len(ids) : number], agent="replay", project=talk.project
        )
        memory.maintenance.embed_waiting()
        ids_made = memory.distill(talk.name)
        place = {id_: n for n, id_ in enumerate(ids)}
        since = talk.entry_counts[number - 1]
        for reading in memory.read(ids_made, reinforce=False):
            log = reading.distillation
            if log is not None:
                until = talk.entry_counts[place[log.to_message]]
                logs.append((since, Distilled(log.id, log.text, log.tokens, until, log.generation)))
    memory.digest.curate(talk.name)
    memory.maintenance.embed_waiting()
    return RememberedSession(tuple(ids), tuple(logs))


def turn_ends(talk: ReplaySession) -> list[int]:
    """Return the message numbers before which a turn ends, and the total."""
    spoken = [n for n, one in enumerate(talk.messages) if one.role == "user" and n]
    return [*spoken, len(talk.messages)]


def has_evidence_in_prompt(talk: ReplaySession, question: EvidenceQuestion, plan: Plan) -> bool:
    """Return whether a prompt contains the evidence of a question."""
    own = talk.entries_of(question.message)
    if plan.start <= own.start:
        entries = [talk.entries[number] for number in own]
        hidden = {b.call_id for e in entries for b in e.blocks if b.kind == "result"}
        if not hidden & plan.annotated:
            return True
    return any(_distillation_answers(one.text, question, talk) for one in plan.prefix)


def _distillation_answers(text: str, question: EvidenceQuestion, talk: ReplaySession) -> bool:
    """Return whether a distillation contains the evidence of a question."""
    from_message = find_specifics(message_text(talk, question.message)) - find_specifics(
        question.text
    )
    needed = {
        one for one in find_specifics(question.answer) & from_message if len(one) >= _LEAST_CHARS
    }
    answer = {words.stem(word) for word in words.search_terms(question.answer)}
    common = answer & {words.stem(word) for word in words.split(text)}
    return bool(needed) and needed <= find_specifics(text) and len(common) >= _WORDS * len(answer)


def message_text(talk: ReplaySession, message: int) -> str:
    """Return the text of a message."""
    return "\n".join(part.text for part in talk.messages[message].parts)


def find_specifics(text: str) -> frozenset[str]:
    """Return the specifics of a text (numbers, code names, paths, quotations) in lower case."""
    matches = (match.group().strip(_EDGES).lower() for match in _SPECIFIC.finditer(text))
    return frozenset(one for one in matches if one)


def has_evidence_in_recall(
    memory: Memory, question: EvidenceQuestion, ids: Mapping[int, str]
) -> bool:
    """Return whether recall shows the evidence of a question."""
    answer = memory.recall(question.text, log=False)
    return any(_shows_message(hit, ids[question.message]) for hit in answer.hits)


def _shows_message(hit: Hit, id_: str) -> bool:
    if hit.type == "message":
        return hit.id == id_
    return hit.type == "distillation" and id_ in hit.sources


AUTOMATIC_CACHING = ("gpt", "gemini", "o3", "o4", "codex", "deepseek")
"""Names of models, by their beginning, whose providers cache automatically."""

WITHOUT_RECALL = ("full", "compaction")
"""Strategies without Lore, which have no recall."""

_BREAKPOINTS = 2
"""The breakpoints that Claude Code sets on tools and system prompt."""

_FINAL_QUESTION = Entry("user", (Block("text", 120, "a question about all of this"),), "question")


@dataclass(frozen=True, slots=True)
class ReplayClient:
    """The TTL of an agent's cache, and the size of its fixed prompt.

    Recordings lack the system prompt and the tools, which agents send with every request.
    """

    lifetime_s: float = CACHE_TTL_S
    fixed_tokens: int = 0


DEFAULT_CLIENT = ReplayClient()


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    """The settings of a replay; `asked` says which questions recall answers."""

    model: str
    price: ModelPrice
    known: RememberedSession
    asked: tuple[bool, ...] = ()
    client: ReplayClient = DEFAULT_CLIENT


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The layer of one request, and the sizes of its parts."""

    at_s: float
    layer: int
    prefix_tokens: int
    raw_tokens: int
    busts: bool

    @property
    def tokens(self) -> int:
        """Return the size of the prompt."""
        return self.prefix_tokens + self.raw_tokens


@dataclass(slots=True)
class ReplayOutcome:
    """The cost of a strategy in a session, and the evidence available at its end."""

    usd: float = 0.0
    tokens_in: int = 0
    busts: int = 0
    questions: int = 0
    by_prompt: int = 0
    by_recall: int = 0
    available: int = 0
    missed: list[str] = field(default_factory=list)
    """Questions whose evidence is neither in the prompt nor in what recall returns."""
    sizes: list[PromptSize] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Return the figures as JSON."""
        return {
            "usd": round(self.usd, 4),
            "tokens_in": self.tokens_in,
            "busts": self.busts,
            "available": self.available,
            "questions": self.questions,
            "available_by": {"prompt": self.by_prompt, "recall": self.by_recall},
        }


def replay_session(
    talk: ReplaySession, name: str, setting: ReplaySetting, strategy: Strategy | None = None
) -> ReplayOutcome:
    """Replay a session with one strategy, and count the available evidence at its end."""
    strategy = strategy or open_strategy(name, talk, setting.price)
    automatic = setting.model.startswith(AUTOMATIC_CACHING)
    cache = PrefixCache(lifetime_s=setting.client.lifetime_s, automatic=automatic)
    outcome = ReplayOutcome(questions=len(talk.questions))
    last_s = talk.requests[0].at_s if talk.requests else 0.0
    sent = Dialogue(
        setting.model,
        (),
        fixed_chars=round(setting.client.fixed_tokens / talk.tokens_per_char),
        breakpoints=_BREAKPOINTS,
    )
    for request in talk.requests:
        entries, at_s = talk.entries[: request.entries], request.at_s
        sent = replace(sent, entries=entries)
        distilled = setting.known.known_at(request.entries)
        prompt = strategy.prompt(
            RequestMoment(sent, at_s, at_s - last_s > setting.client.lifetime_s, distilled)
        )
        uses = _send_prompt(cache, prompt, at_s)
        outcome.usd += sum(setting.price.cost(use) for use in uses)
        outcome.tokens_in += sum(use.input_tokens for use in uses)
        outcome.busts += prompt.plan.busts
        outcome.sizes.append(_size(prompt.plan, uses[-1], at_s))
        last_s = at_s
    ended = replace(sent, entries=(*talk.entries, _FINAL_QUESTION))
    distilled = setting.known.known_at(len(talk.entries))
    last = strategy.prompt(RequestMoment(ended, last_s, cold=False, known=distilled))
    _count_evidence(outcome, talk, last.plan, () if name in WITHOUT_RECALL else setting.asked)
    return outcome


def _send_prompt(cache: PrefixCache, prompt: StrategyPrompt, at_s: float) -> list[TokenUse]:
    """Return the usage of a prompt, and of the strategy's own request before it."""
    uses = []
    if prompt.asked:
        own = cache.send(prompt.asked, at_s)
        uses.append(replace(own, output_tokens=prompt.written_tokens))
    return [*uses, cache.send(prompt.pieces, at_s)]


def _size(plan: Plan, use: TokenUse, at_s: float) -> PromptSize:
    prefix_tokens = sum(one.tokens for one in plan.prefix)
    return PromptSize(
        at_s, plan.layer, prefix_tokens, use.input_tokens - prefix_tokens, busts=plan.busts
    )


def _count_evidence(
    outcome: ReplayOutcome, talk: ReplaySession, plan: Plan, recalled: tuple[bool, ...]
) -> None:
    """Count the questions whose evidence is available."""
    for number, question in enumerate(talk.questions):
        is_in_prompt = has_evidence_in_prompt(talk, question, plan)
        is_recalled = bool(recalled) and recalled[number]
        outcome.by_prompt += is_in_prompt
        outcome.by_recall += is_recalled
        outcome.available += is_in_prompt or is_recalled
        if not (is_in_prompt or is_recalled):
            outcome.missed.append(question.text)

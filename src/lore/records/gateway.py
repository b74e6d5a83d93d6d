"""Dialogues that pass through the gateway, their prompts, token usage and spend."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Literal

from lore.lazy_dataclass import dataclass
from lore.records.answers import InjectedItem

BlockKind = Literal["text", "call", "result", "reasoning", "other"]
"""Text, tool call, tool result, reasoning (readable only by the model), or other."""

Voice = Literal["user", "assistant", "system"]

Layer = Literal[0, 1, 2, 3, 4]

_MILLION = 1_000_000

_REMINDER = "<system-reminder>"
"""Begins text that a client adds to a person's message."""

_COMMAND = "lore:"
"""In every command that a person types to Lore."""

_CONTEXT = "<session_context>", "</session_context>"
"""The context that Gemini CLI puts before a person's first message."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an entry; `call_id` joins a tool call and its result."""

    kind: BlockKind
    chars: int
    text: str = ""
    call_id: str = ""
    tool: str = ""
    failed: bool = False
    by_id: bool = True
    """The client uses the provider's id, not one of its own."""

    @property
    def says(self) -> bool:
        """Return whether a person or the assistant wrote it, and no client in their name."""
        text = self.text.strip()
        is_context = text.startswith(_CONTEXT[0]) and text.endswith(_CONTEXT[1])
        return self.chars > 0 and not is_context and not text.startswith(_REMINDER)


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a dialogue.

    `key` is a digest of the content that does not depend on its format; it identifies the entry in
    later requests, also after a restart. Values that every request needs are computed once.
    """

    voice: Voice
    blocks: tuple[Block, ...]
    key: str
    chars: int = field(init=False, compare=False, repr=False)
    """The length of the entry."""
    begins_turn: bool = field(init=False, compare=False, repr=False)
    """Whether a person writes in it, and it contains nothing else."""
    texts: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Its text, without reminders of the client."""
    may_be_command: bool = field(init=False, compare=False, repr=False)
    """Whether a person may have typed a command to Lore in it."""

    def __post_init__(self) -> None:
        """Compute the derived fields."""
        says = [block for block in self.blocks if block.says]
        gives_results = any(block.kind == "result" for block in self.blocks)
        begins = self.voice == "user" and bool(says) and not gives_results
        texts = tuple(one.text for one in says if one.kind == "text" and one.text.strip())
        object.__setattr__(self, "chars", sum(block.chars for block in self.blocks))
        object.__setattr__(self, "begins_turn", begins)
        object.__setattr__(self, "texts", texts)
        may_be_command = begins and any(_COMMAND in text.lower() for text in texts)
        object.__setattr__(self, "may_be_command", may_be_command)

    def typed(self, *, joined: bool) -> tuple[str, ...]:
        """Return the texts in which a person may have typed a command.

        Unless an agent's entries are `joined` from typed texts, that is a single text.
        """
        texts = self.texts if self.begins_turn else ()
        return texts if joined or len(texts) == 1 else ()


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The contents of one request: entries after the system prompt and tools (`fixed`)."""

    model: str
    entries: tuple[Entry, ...]
    fixed_chars: int = 0
    breakpoints: int = 0
    """The number of cache breakpoints that the client set before the first entry."""


@dataclass(frozen=True, slots=True)
class TokenUse:
    """The token usage that a provider reports for a request; each token counts once."""

    fresh_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """Return the length of the prompt."""
        cached = self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens
        return self.fresh_tokens + cached

    @property
    def classes(self) -> tuple[int, int, int, int, int]:
        """Return the tokens of each class, in the order of the fields."""
        return (
            self.fresh_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.cache_write_1h_tokens,
            self.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of a model in US dollars per million tokens, and its context window."""

    input_usd: float
    output_usd: float
    cache_read_usd: float
    cache_write_usd: float
    cache_write_1h_usd: float
    window_tokens: int = 200_000
    longer: tuple[tuple[int, ModelPrice], ...] = ()
    """Prices of longer prompts, by the token count from which they hold; the shortest first."""

    def at(self, input_tokens: int) -> ModelPrice:
        """Return the price for a prompt of this length."""
        price_there = self
        for start, price in self.longer:
            if input_tokens > start:
                price_there = price
        return price_there

    def cost(self, use: TokenUse) -> float:
        """Return the cost of a request in US dollars."""
        price = self.at(use.input_tokens)
        total = (
            use.fresh_tokens * price.input_usd
            + use.cache_read_tokens * price.cache_read_usd
            + use.cache_write_tokens * price.cache_write_usd
            + use.cache_write_1h_tokens * price.cache_write_1h_usd
            + use.output_tokens * price.output_usd
        )
        return total / _MILLION


@dataclass(frozen=True, slots=True)
class Distilled:
    """A distillation that can replace all entries before the number `until`."""

    id: str
    text: str
    tokens: int
    until: int
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PromptState:
    """What a session reuses in every prompt, so that prompts share a prefix.

    Entries are identified by key, because clients may drop or add some.
    """

    layer: Layer = 0
    floor: Layer = 0
    start: str = ""
    """The key of the first entry that is sent unchanged; empty for all."""
    prefix: tuple[str, ...] = ()
    """The ids of the distillations before it, in order."""
    annotated: frozenset[str] = frozenset()
    """The tool calls whose results are sent as annotations."""
    busts_in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class ClientSession:
    """The session of a request: agent and project; a subagent's session has a parent.

    `began` is the name in the first request if that was different. An `unnamed` session is
    identified by its content, which another session may share.
    """

    session: str
    agent: str
    project: str = ""
    parent: str = ""
    began: str = ""
    unnamed: bool = False

    @property
    def place(self) -> str:
        """Return the cache key of its state, which includes the project to keep projects apart."""
        return f"{self.session}\0{self.agent}\0{self.project}"

    @property
    def first(self) -> ClientSession:
        """Return the client session of the first request."""
        return replace(self, session=self.began, began="") if self.began else self

    @property
    def marks_injected_text(self) -> bool:
        """Return whether the agent marks all text in a person's entry that the person did not type.

        Text that other programs put beside a person's words may come from any file.
        """
        return self.agent in _FENCING


_FENCING = frozenset({"claude-code", "codex", "opencode"})


@dataclass(frozen=True, slots=True)
class Measured:
    """Size and time of a session's last prompt.

    `entries` is their number, and `end` the key of the last. `lifetime_s` is the lifetime of the
    provider's cache.
    """

    chars: int = 0
    tokens: int = 0
    tokens_per_char: float = 0.0
    turns_without_writes: int = 0
    turns: int = 0
    entries: int = 0
    end: str = ""
    at_s: float = 0.0
    lifetime_s: float = 300.0
    whole_tokens: int = 0
    """The token count without any shortening."""
    cached_tokens: int = 0
    """Those that were read from the provider's cache."""


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """What a session carries from one request to the next.

    `knowledge` is the memory block after the system prompt, None before it was chosen and empty if
    there was none. A `bare` session started while memory was late: it stays without memory while
    its prompts are cached. `notes` are texts after entries, by entry key; `tiers` are distillations
    of distillations. An `is_private` session is not stored and gets nothing. `told` are the memory
    items in its notes, by the same keys, and in its knowledge, by an empty key.
    """

    pins: PromptState = PromptState()
    measured: Measured = Measured()
    knowledge: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    tiers: tuple[Distilled, ...] = ()
    is_private: bool = False
    bare: bool = False
    told: Mapping[str, tuple[InjectedItem, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a prompt is built from a dialogue.

    `start` is the number of the first entry that is sent unchanged; `prefix` replaces those before.
    `pins` is the prompt state for the next request.
    """

    layer: Layer
    state: PromptState
    start: int = 0
    prefix: tuple[Distilled, ...] = ()
    annotated: frozenset[str] = frozenset()
    tokens: int = 0
    busts: bool = False
    why: str = ""
    notes: tuple[str, ...] = field(default=())
    """Warnings about the prompt, such as a turn that is too long to shorten."""


SpendGroup = Literal["model", "project", "session", "day"]
"""What spend is grouped by."""


@dataclass(frozen=True, slots=True)
class RequestCost:
    """The most that a model call may use, and what it is for.

    `max_usage` is None for a request that was not parsed. `session` and `project` are names in the
    store. Background work names its model with the provider, separated by a colon.
    """

    model: str
    max_usage: TokenUse | None
    provider: str = ""
    service: str = ""
    session: str = ""
    project: str = ""
    kind: str = "turn"
    work: Literal["request", "background"] = "request"

    @property
    def purpose(self) -> str:
        """Return the purpose that the ledger stores."""
        return f"{self.work}:{self.kind}"


@dataclass(frozen=True, slots=True)
class RequestHold:
    """A budget reservation for one model call; `usd` is None if the price is unknown.

    `is_stored` says that the store has the reservation; others are counted by this process only.
    """

    key: str
    at: datetime
    cost: RequestCost
    usd: float | None
    is_stored: bool = False
    prompt_usd: float = 0.0
    """The share of the prompt, which is spent even if the response is lost."""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What the ledger records of a request beside its tokens.

    `without` is the estimated usage without Lore; None if it is the same. `estimated` usage was not
    reported by the provider. Each of several `rounds` is priced by its own length. `service` is the
    service tier of the response. A background response is `fetched_by` an id, which reports the
    usage later.
    """

    layer: int = 0
    busts: bool = False
    delay_s: float = 0.0
    without: TokenUse | None = None
    estimated: bool = False
    rounds: tuple[TokenUse, ...] = ()
    service: str = ""
    fetched_by: str = ""


@dataclass(frozen=True, slots=True)
class PastTurns:
    """Turn counts of ended sessions, and the seconds between turns."""

    lengths: tuple[int, ...] = ()
    gaps_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DayBudget:
    """The state of the daily budget for all spend; without a budget anything may be spent."""

    budget_usd: float | None
    spent_usd: float
    reserved_usd: float
    until: datetime


@dataclass(frozen=True, slots=True)
class SpendPressure:
    """How the daily budget limits a request: delay it, and shorten it."""

    delay_s: float = 0.0
    exceeds: bool = False
    """At the rate of the last hour the budget would be exceeded."""


@dataclass(frozen=True, slots=True)
class SpendLine:
    """The spend of one model, project, session or day.

    `without_usd` is the estimated cost without Lore at the same prices; `saved_usd` is that minus
    all spend, including background work.
    """

    name: str
    requests: int = 0
    background: int = 0
    tokens: TokenUse = field(default_factory=TokenUse)
    usd: float = 0.0
    without_usd: float = 0.0
    saved_usd: float = 0.0
    busts: int = 0
    delayed: int = 0
    delay_ms: int = 0
    unpriced: int = 0
    """Calls with an unknown price; they count as free."""
    estimated: int = 0
    """Requests without reported usage; they count with an estimate."""
    label: str = ""
    """The path of a project or the title of a session."""


@dataclass(frozen=True, slots=True)
class SpendReport:
    """The spend since a time, grouped, most expensive first."""

    since: datetime
    by: SpendGroup
    lines: tuple[SpendLine, ...]
    total: SpendLine
    budget: DayBudget
    throttle: dict[str, int]
    """Counters `events` (delayed requests) and `totalDelayMs`."""


@dataclass(frozen=True, slots=True)
class SpendCounter:
    """What one process has counted for one model since it started."""

    model: str
    requests: int
    tokens: TokenUse
    usd: float
    without_usd: float
    delayed: int
    delay_ms: int
    refused: int


LATE = "late"
"""The reason of a request that went without memory because memory missed its deadline."""


class GatewayStats:
    """Counts gateway requests and why some went without memory; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._degraded: Counter[str] = Counter()
        self._quotas: dict[str, tuple[tuple[float, datetime | None], ...]] = {}
        self.last_direct_at: datetime | None = None
        """When an agent that needs the gateway, because no relay stands before it, last asked."""

    def count(self, reason: str = "") -> None:
        """Count a request, with the reason if it went without memory."""
        with self._lock:
            self._requests += 1
            if reason:
                self._degraded[reason] += 1

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return self._requests

    def note_quotas(self, provider: str, quotas: Iterable[tuple[float, datetime | None]]) -> None:
        """Remember the used shares of a provider's quotas, and when each resets."""
        with self._lock:
            self._quotas[provider] = tuple(quotas)

    def quota_pressure(self, now: datetime) -> float:
        """Return the highest used share of a quota that has not been reset, 0 to 1."""
        with self._lock:
            known = [quota for quotas in self._quotas.values() for quota in quotas]
        shares = [share for share, until in known if until is None or until > now]
        return min(1.0, max((0.0, *shares)))

    def degraded(self) -> dict[str, int]:
        """Return how many requests went without memory, by reason."""
        with self._lock:
            return dict(self._degraded)

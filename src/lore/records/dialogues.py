"""Dialogues: what a client sends to a model, as whoever plans a prompt sees it, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from lore.records.prompting import Given

BlockKind = Literal["text", "call", "result", "reasoning", "other"]
"""What a block is: words, a call of a tool, its result, what only the model can read, the rest."""

Voice = Literal["user", "assistant", "system"]

Layer = Literal[0, 1, 2, 3, 4]

_MILLION = 1_000_000

_REMINDER = "<system-reminder>"
"""Begins what a client says to the model in the person's name."""

_CONTEXT = "<session_context>", "</session_context>"
"""What Gemini CLI puts before a person's first words, as a text of its own."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of an entry; `call_id` joins a call and its result, wherever both stand."""

    kind: BlockKind
    chars: int
    text: str = ""
    call_id: str = ""
    tool: str = ""
    failed: bool = False
    by_id: bool = True
    """A client sends it under the id that the provider gave it, and not under one of its own."""

    @property
    def says(self) -> bool:
        """Tell whether anybody says something in it, and no program in the person's name."""
        text = self.text.strip()
        is_context = text.startswith(_CONTEXT[0]) and text.endswith(_CONTEXT[1])
        return self.chars > 0 and not is_context and not text.startswith(_REMINDER)


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a dialogue.

    `key` is a digest of what it says, the same whatever form the client gives it in: it knows
    an entry again from one request to the next, and after a restart. What an entry is asked with
    every request that has it again is told once.
    """

    voice: Voice
    blocks: tuple[Block, ...]
    key: str
    chars: int = field(init=False, compare=False, repr=False)
    """How long the entry is."""
    begins_turn: bool = field(init=False, compare=False, repr=False)
    """Whether a person says something in it, and nothing else goes on in it."""
    texts: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """What is said in words, without what a client reminds the model of."""

    def __post_init__(self) -> None:
        """Look once what the blocks say."""
        says = [block for block in self.blocks if block.says]
        gives_results = any(block.kind == "result" for block in self.blocks)
        begins = self.voice == "user" and bool(says) and not gives_results
        told = tuple(one.text for one in says if one.kind == "text" and one.text.strip())
        object.__setattr__(self, "chars", sum(block.chars for block in self.blocks))
        object.__setattr__(self, "begins_turn", begins)
        object.__setattr__(self, "texts", told)

    def typed(self, *, joined: bool) -> tuple[str, ...]:
        """Return the texts that a person may have typed a command in.

        If an agent's entries are not `joined` of what was typed, that is a single text.
        """
        told = self.texts if self.begins_turn else ()
        return told if joined or len(told) == 1 else ()


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What one request tells a model: its entries, behind system prompt and tools (`fixed`)."""

    model: str
    entries: tuple[Entry, ...]
    fixed_chars: int = 0
    breakpoints: int = 0
    """How many cache breakpoints the client has set before the first entry."""


@dataclass(frozen=True, slots=True)
class TokenUse:
    """What a provider says that a request took, each token counted once."""

    fresh_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """Return how long the prompt was."""
        cached = self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens
        return self.fresh_tokens + cached


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What a model costs in US dollars per million tokens, and how much it can read."""

    input_usd: float
    output_usd: float
    cache_read_usd: float
    cache_write_usd: float
    cache_write_1h_usd: float
    window_tokens: int = 200_000
    longer: tuple[tuple[int, ModelPrice], ...] = ()
    """From how many tokens of a prompt on another price holds for all of it, the shortest first."""

    def at(self, input_tokens: int) -> ModelPrice:
        """Return the price of a prompt so long."""
        found = self
        for start, price in self.longer:
            if input_tokens > start:
                found = price
        return found

    def cost(self, use: TokenUse) -> float:
        """Return what a request costs in US dollars."""
        total = (
            use.fresh_tokens * self.input_usd
            + use.cache_read_tokens * self.cache_read_usd
            + use.cache_write_tokens * self.cache_write_usd
            + use.cache_write_1h_tokens * self.cache_write_1h_usd
            + use.output_tokens * self.output_usd
        )
        return total / _MILLION


@dataclass(frozen=True, slots=True)
class Distilled:
    """A log that can stand in the place of entries: all before the entry number `until`."""

    id: str
    text: str
    tokens: int
    until: int
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Pins:
    """What a session holds on to between requests, so that its prompts begin with the same bytes.

    Entries are named by their keys, because a client may drop or add some at any time.
    """

    layer: Layer = 0
    floor: Layer = 0
    start: str = ""
    """Key of the first entry that is sent as it is; empty: of all."""
    prefix: tuple[str, ...] = ()
    """Ids of the distillations in front of it, in their order."""
    annotated: frozenset[str] = frozenset()
    """Calls whose results are sent as an annotation."""
    busts_in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose request it is: a session of an agent, in a project; a helper's has a parent.

    `began` is the name that the first request of a session had, where it was another one. A
    session that is `unnamed` by its client goes by what was said: another may say the same.
    """

    session: str
    agent: str
    project: str = ""
    parent: str = ""
    began: str = ""
    unnamed: bool = False

    @property
    def place(self) -> str:
        """Return what its states are kept by: what one project was told is nobody else's."""
        return f"{self.session}\0{self.agent}\0{self.project}"

    @property
    def first(self) -> Speaker:
        """Return the speaker of the first request of the session."""
        return replace(self, session=self.began, began="") if self.began else self

    @property
    def marks_what_it_adds(self) -> bool:
        """Tell whether all texts that an agent puts into a person's entry were typed by a person.

        Those agents join what was typed one after the other, and fence what nobody typed. What
        another program puts beside a person's words may be a file that anyone has written.
        """
        return self.agent in _FENCING


_FENCING = frozenset({"claude-code", "codex", "opencode"})


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of the last prompt of a session: its size, and when it was sent.

    `entries` is how many entries it had, and `end` the key of the last one. `lifetime_s` is how
    long the provider keeps it.
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
    """How long it would have been with nothing left out."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a session carries from one request to the next.

    `knowledge` is the block of memory behind the system prompt, None before it was chosen and
    empty where nothing was. A `bare` session began while memory was late: it goes on without it
    for as long as its prompts are cached. `notes` are texts that were put behind entries, by the
    entries' keys; `tiers` the distillations made of others. An `amnesic` session is not stored,
    and is given nothing. `told` is what of memory its notes tell, by the same keys, and its
    knowledge, by none.
    """

    pins: Pins = Pins()
    measured: Measured = Measured()
    knowledge: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    tiers: tuple[Distilled, ...] = ()
    amnesic: bool = False
    bare: bool = False
    told: Mapping[str, tuple[Given, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """How one prompt is made of a dialogue.

    `start` is the number of the first entry that is sent as it is; `prefix` stands for those before
    it. `pins` is what the session holds on to for the next request.
    """

    layer: Layer
    pins: Pins
    start: int = 0
    prefix: tuple[Distilled, ...] = ()
    annotated: frozenset[str] = frozenset()
    tokens: int = 0
    busts: bool = False
    why: str = ""
    notes: tuple[str, ...] = field(default=())
    """What is to be said of it: where the current turn alone is too long, nothing helps."""

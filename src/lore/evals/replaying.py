"""Replaying: one session, request by request, with one strategy, one model and one cache."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lore.evals import caching
from lore.evals.caching import PrefixCache
from lore.evals.evidence import Remembered, in_prompt
from lore.evals.long_talks import Talk
from lore.evals.strategies import Moment, Prompt, Strategy, open_strategy
from lore.records.dialogues import Block, Dialogue, Entry, ModelPrice, Plan, TokenUse

AUTOMATIC = ("gpt", "gemini", "o3", "o4", "codex", "deepseek")
"""How the names of models begin whose providers cache without being told."""

WITHOUT_RECALL = ("full", "compaction")
"""What an agent does without Lore: it has no memory to ask."""

_BREAKPOINTS = 2
"""What Claude Code sets on tools and system prompt."""

_ASKED = Entry("user", (Block("text", 120, "a question about all of this"),), "question")


@dataclass(frozen=True, slots=True)
class Client:
    """How an agent sends its prompts: for how long they are cached, and with what before the talk.

    Recordings have no system prompt and no tools, which agents send with every request.
    """

    lifetime_s: float = caching.LIFETIME_S
    fixed_tokens: int = 0


USUAL = Client()


@dataclass(frozen=True, slots=True)
class Setting:
    """What a session is replayed with; `asked` tells which questions recall answers."""

    model: str
    price: ModelPrice
    known: Remembered
    asked: tuple[bool, ...] = ()
    client: Client = USUAL


@dataclass(frozen=True, slots=True)
class Size:
    """How one request was made: its layer, and how long its parts are."""

    at_s: float
    layer: int
    prefix_tokens: int
    raw_tokens: int
    busts: bool

    @property
    def tokens(self) -> int:
        """Return how long the prompt was."""
        return self.prefix_tokens + self.raw_tokens


@dataclass(slots=True)
class Outcome:
    """What a strategy took for a session, and what is at hand at its end."""

    usd: float = 0.0
    tokens_in: int = 0
    busts: int = 0
    questions: int = 0
    by_prompt: int = 0
    by_recall: int = 0
    available: int = 0
    sizes: list[Size] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Return the figures under the names that programs read."""
        return {
            "usd": round(self.usd, 4),
            "tokens_in": self.tokens_in,
            "busts": self.busts,
            "available": self.available,
            "questions": self.questions,
            "available_by": {"prompt": self.by_prompt, "recall": self.by_recall},
        }


def replay(talk: Talk, name: str, setting: Setting, strategy: Strategy | None = None) -> Outcome:
    """Replay a session with one strategy, and look for the evidence of questions at its end."""
    strategy = strategy or open_strategy(name, talk, setting.price)
    automatic = setting.model.startswith(AUTOMATIC)
    cache = PrefixCache(lifetime_s=setting.client.lifetime_s, automatic=automatic)
    outcome = Outcome(questions=len(talk.questions))
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
        known = setting.known.known_at(request.entries)
        prompt = strategy.prompt(
            Moment(sent, at_s, at_s - last_s > setting.client.lifetime_s, known)
        )
        uses = _send(cache, prompt, at_s)
        outcome.usd += sum(setting.price.cost(use) for use in uses)
        outcome.tokens_in += sum(use.input_tokens for use in uses)
        outcome.busts += prompt.plan.busts
        outcome.sizes.append(_size(prompt.plan, uses[-1], at_s))
        last_s = at_s
    ended = replace(sent, entries=(*talk.entries, _ASKED))
    known = setting.known.known_at(len(talk.entries))
    last = strategy.prompt(Moment(ended, last_s, cold=False, known=known))
    _judge(outcome, talk, last.plan, () if name in WITHOUT_RECALL else setting.asked)
    return outcome


def _send(cache: PrefixCache, prompt: Prompt, at_s: float) -> list[TokenUse]:
    """Return what became of a prompt, after what its strategy asked for first."""
    uses = []
    if prompt.asked:
        own = cache.send(prompt.asked, at_s)
        uses.append(replace(own, output_tokens=prompt.written_tokens))
    return [*uses, cache.send(prompt.pieces, at_s)]


def _size(made: Plan, use: TokenUse, at_s: float) -> Size:
    told = sum(one.tokens for one in made.prefix)
    return Size(at_s, made.layer, told, use.input_tokens - told, busts=made.busts)


def _judge(outcome: Outcome, talk: Talk, made: Plan, recalled: tuple[bool, ...]) -> None:
    """Count the questions whose evidence is at hand."""
    for number, question in enumerate(talk.questions):
        told = in_prompt(talk, question, made)
        found = bool(recalled) and recalled[number]
        outcome.by_prompt += told
        outcome.by_recall += found
        outcome.available += told or found

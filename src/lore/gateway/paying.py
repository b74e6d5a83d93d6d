"""Paying: money is set aside before a request and entered after it, whatever memory does."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from lore.context.sizing import Measure
from lore.errors import BudgetSpent, InvalidInput
from lore.gateway.apis.shapes import MOST_COUNTED
from lore.gateway.apis.wire import Reply, ReplyReader, Wire
from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Incoming, Outcome, Prepared, Provider
from lore.gateway.keeping import WELL, Kept
from lore.gateway.refusals import refusal
from lore.gateway.taking import Answered, Taken, is_unreadable, take
from lore.memory import Memory
from lore.memory.costing import most_output
from lore.records import Course, Reserved, TokenUse
from lore.text.tokens import UNCALIBRATED

_OWNERS: Mapping[str, Provider] = {
    "anthropic": "anthropic",
    "chat": "openai",
    "responses": "openai",
    "gemini": "gemini",
}
"""Whose a wire is: it is refused in their words, whoever is behind it."""

_PRICED_AS: Mapping[Provider, str] = {"gemini": "google"}

PROVIDERS: Mapping[str, str] = {
    wire: _PRICED_AS.get(owner, owner) for wire, owner in _OWNERS.items()
}
"""The list that tells the prices of a wire's models."""

_UNCOUNTED = Measure()
"""How long a prompt is that no provider has counted: rather more than it really is, to be safe."""

_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

MOST_ANSWERS = 1_000
"""No provider gives so many to one request; OpenAI takes an `n` of 128 at most."""

_USUAL = Course()

SPENT, BUSY = 402, 429
"""Clients come again after a 429 and not after a 402, which is right for each."""


class Further:
    """Money for the further requests of an answer: for one at a time, at most what it may take."""

    def __init__(
        self,
        memory: Memory,
        first: Reserved,
        most: TokenUse,
        reserve: Callable[[TokenUse], Reserved],
    ) -> None:
        self._memory, self._first, self._most, self._reserve = memory, first, most, reserve
        self._held: tuple[Reserved, ...] = ()
        self._is_over = False
        self._lock = threading.Lock()

    def set_aside(self, taken: Taken, more_chars: int) -> None:
        """Set money aside for a prompt that is so much longer than the first, or raise.

        What all before it took is counted, and what they did not take is there for others.
        """
        if taken.use.input_tokens:
            self._memory.count_request(self._first, taken.use, service=taken.service)
        self._hold()
        self._hold(self._reserve(lengthened(self._most, more_chars)))

    def close(self) -> None:
        """Give back what is held; from now on nothing is."""
        with self._lock:
            self._is_over = True
        self._hold()

    def _hold(self, *reserved: Reserved) -> None:
        """Hold this and nothing else; once the client has left, nothing at all."""
        with self._lock:
            let_go = (*self._held, *reserved) if self._is_over else self._held
            self._held = () if self._is_over else reserved
        for one in let_go:
            self._memory.release_request(one)


@dataclass(frozen=True, slots=True)
class Bill:
    """A request that is paid for: what was set aside, and how its answer is read."""

    wire: Wire
    reserved: Reserved
    streams: bool
    prompt: TokenUse
    """About what the prompt takes, where no answer says so; its output is the most there may be."""
    further: Further | None = None
    """Money for the requests that an answer needs besides the first."""
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that is over: what it was answered, how that ended, and what it took."""

    bill: Bill
    replies: tuple[Reply, ...]
    outcome: Outcome
    taken: Taken


def output_limit(document: Mapping[str, object], model: str) -> int:
    """Return how much all answers to a request may take at most."""
    config = document.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    told = [document.get(name) for name in _OUTPUT_LIMITS]
    limit = _first_number(*told, config.get("maxOutputTokens")) or most_output(model)
    answers = _first_number(document.get("n"), config.get("candidateCount")) or 1
    return min(limit, MOST_COUNTED) * min(answers, MOST_ANSWERS)


def _first_number(*told: object) -> int:
    """Return the first of what a client tells that is a number above zero, else zero."""
    numbers = (one for one in told if isinstance(one, int | float) and not isinstance(one, bool))
    return next((int(one) for one in numbers if 1 <= one < math.inf), 0)


def service_of(document: Mapping[str, object]) -> str:
    """Return the service that a request asks for, where there are dearer and cheaper ones."""
    told = (document.get(name) for name in ("speed", "service_tier"))
    return next((one for one in told if isinstance(one, str)), "")


def most_of(wire: str, input_tokens: int, output_tokens: int, *, long: bool = False) -> TokenUse:
    """Return the most that a request may take: all of it is new to the cache, a `long` one too."""
    if wire == "anthropic" and long:
        return TokenUse(cache_write_1h_tokens=input_tokens, output_tokens=output_tokens)
    if wire == "anthropic":
        return TokenUse(cache_write_tokens=input_tokens, output_tokens=output_tokens)
    return TokenUse(fresh_tokens=input_tokens, output_tokens=output_tokens)


def most_of_bytes(wire: str, length: int, output_tokens: int, *, long: bool = False) -> TokenUse:
    """Return the most that a request of so many bytes may take, whatever they say."""
    return most_of(wire, _UNCOUNTED.of_chars(length), output_tokens, long=long)


def lengthened(most: TokenUse, chars: int) -> TokenUse:
    """Return the most that a request may take with so many more characters in its prompt."""
    more = _UNCOUNTED.of_chars(max(0, chars))
    if most.cache_write_1h_tokens:
        return replace(most, cache_write_1h_tokens=most.cache_write_1h_tokens + more)
    if most.cache_write_tokens:
        return replace(most, cache_write_tokens=most.cache_write_tokens + more)
    return replace(most, fresh_tokens=most.fresh_tokens + more)


def prompt_of(most: TokenUse, *, counted: bool) -> TokenUse:
    """Return what a prompt takes by what was set aside, without the margin of an uncounted one.

    As output it has all that its answers may take.
    """
    margin = 1.0 if counted else UNCALIBRATED
    return TokenUse(
        fresh_tokens=round(most.fresh_tokens / margin),
        cache_write_tokens=round(most.cache_write_tokens / margin),
        cache_write_1h_tokens=round(most.cache_write_1h_tokens / margin),
        output_tokens=most.output_tokens,
    )


def refusing(incoming: Incoming) -> Provider:
    """Return in whose words a request is refused."""
    return _OWNERS.get(incoming.wire, incoming.provider)


def refused(provider: Provider, error: BudgetSpent, now: datetime) -> Prepared:
    """Return the answer to a request for which there is no money."""
    wait_s = (error.until - now).total_seconds() if error.until else 0.0
    status = BUSY if 0 < wait_s < 60 else SPENT
    told = refusal(provider, status, f"Lore: {error} {error.hint}".strip())
    if status == BUSY:
        told = replace(told, headers=(*told.headers, ("retry-after", str(math.ceil(wait_s)))))
    return Prepared(answer=told)


@dataclass(slots=True)
class Observing:
    """Reads what upstream answers; several answers where recall stood between them."""

    bill: Bill
    on_end: Callable[[Ended], None]
    on_settle: Callable[[Ended], None]
    on_headers: Callable[[Mapping[str, str]], None]
    on_use: Callable[[], None] | None = None
    """What is to be done once upstream has taken the prompt."""
    whole: bool = True
    """Of an answer that is only paid for, nothing is read but what it took."""
    _answers: list[Kept] = field(default_factory=list)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin to keep an answer."""
        if not self._answers and status in WELL and self.on_use is not None:
            attempt("use", self.on_use)
        self._answers.append(Kept.of(status, headers, streams=self.bill.streams))
        attempt("quotas", partial(self.on_headers, headers))

    def see(self, piece: bytes) -> None:
        """Keep a piece of it: it is read at the end, off the path."""
        self._answers[-1].add(piece)

    def end(self, outcome: Outcome) -> None:
        """Read all that was kept, and do with it what is to be done."""
        try:
            self.on_end(self._ended(outcome, whole=self.whole))
        finally:
            self._close()

    def settle(self, outcome: Outcome) -> None:
        """Read what it took, and enter that."""
        try:
            self.on_settle(self._ended(outcome, whole=False))
        finally:
            self._close()

    def pay_further(self, first_bytes: int, body: bytes) -> None:
        """Set money aside for a further request of this answer, or raise `BudgetSpent`."""
        if self.bill.further is not None:
            taken = self._ended("complete", whole=False).taken
            self.bill.further.set_aside(taken, len(body) - first_bytes)

    def _close(self) -> None:
        if self.bill.further is not None:
            self.bill.further.close()

    def _ended(self, outcome: Outcome, *, whole: bool) -> Ended:
        """Read what was kept; what cannot be read is no reason to keep money set aside."""
        answered = []
        for place, kept in enumerate(self._answers, start=1):
            is_cut = outcome != "complete" and place == len(self._answers)
            read = attempt("read", partial(self._read, kept, is_cut=is_cut, whole=whole))
            reply = Reply(chars=kept.length) if isinstance(read, Failure) else read
            answered.append(Answered(kept.status, reply, is_cut))
        replies = tuple(one.reply for one in answered)
        return Ended(self.bill, replies, outcome, take(answered, self.bill.prompt))

    def _read(self, kept: Kept, *, is_cut: bool, whole: bool) -> Reply:
        try:
            body = kept.body()
        except InvalidInput:
            # Events are about as much longer than what they say as packing makes them shorter.
            return Reply(chars=kept.length)
        if kept.streams and not whole and not is_cut:
            told = self._fed(kept, _telling(body))
            if told.use.input_tokens:
                return told
        reply = self._fed(kept, body)
        if not kept.streams and (is_cut or is_unreadable(reply)):
            # All of it had been written before the first byte came.
            return replace(reply, chars=max(reply.chars, len(body)))
        return reply

    def _fed(self, kept: Kept, body: bytes) -> Reply:
        reader: ReplyReader = self.bill.wire.open_reader(streams=kept.streams)
        reader.feed(body)
        return reader.end()


@dataclass(slots=True)
class Unread:
    """Notes whether a request was answered that nobody reads: what it took, nobody knows."""

    memory: Memory
    reserved: Reserved
    _answered: bool = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take note of whether it was refused."""
        del headers
        self._answered = status in WELL

    def see(self, piece: bytes) -> None:
        """Let a piece pass."""

    def end(self, outcome: Outcome) -> None:
        """Enter it, if it was answered at all."""
        del outcome
        if self._answered:
            self.memory.settle_request(self.reserved, None)
        else:
            self.memory.release_request(self.reserved)

    settle = end


def _telling(stream: bytes) -> bytes:
    """Return the events of a stream that tell what it took, or what went wrong."""
    events = stream.replace(b"\r\n", b"\n").split(b"\n\n")
    telling = [event for event in events if b"usage" in event or b"error" in event]
    return b"".join(event + b"\n\n" for event in telling)


def count(memory: Memory, ended: Ended) -> None:
    """Let the next request have what this one did not take, before anything else is done."""
    if ended.taken.use.input_tokens:
        memory.count_request(ended.bill.reserved, ended.taken.use, service=ended.taken.service)


def settle(memory: Memory, ended: Ended, course: Course = _USUAL) -> None:
    """Enter what a request took, or give back what was set aside if it took nothing."""
    bill, taken, used = ended.bill, ended.taken, ended.taken.use
    if not used.input_tokens and not used.output_tokens:
        memory.release_request(bill.reserved)
        return
    without = course.without
    if without is not None:
        # The same would have been answered, and cut off, without what Lore was asked before.
        answered = taken.rounds[-1] if taken.rounds else used
        without = replace(without, output_tokens=answered.output_tokens)
    course = replace(
        course,
        without=without,
        delay_s=bill.delay_s,
        estimated=taken.estimated,
        rounds=taken.rounds,
        service=taken.service,
        fetched_by=next((one.fetched_by for one in ended.replies if one.goes_on), ""),
    )
    memory.settle_request(bill.reserved, used, course)

"""Paying: money is set aside before a request and entered after it, whatever memory does."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from lore.errors import BudgetSpent
from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Incoming, Outcome, Prepared
from lore.gateway.refusals import refusal
from lore.gateway.routing import Provider
from lore.gateway.wires.wire import Reply, ReplyReader, Wire
from lore.memory import Memory
from lore.records import Reserved, TokenUse

PROVIDERS: Mapping[str, str] = {
    "anthropic": "anthropic",
    "chat": "openai",
    "responses": "openai",
    "gemini": "google",
}
"""The list that tells the prices of a wire's models."""

_REFUSING: Mapping[str, Provider] = {"anthropic": "anthropic", "gemini": "gemini"}
"""Whose words a wire is refused in, where they are not OpenAI's."""

USUAL_OUTPUT_TOKENS = 8_000
"""What an answer may take whose client sets no limit."""

_CHARS_PER_TOKEN = 3
"""Of the bytes of a request that nobody has read: fewer than it really has, to be safe."""

_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

MOST_KEPT_BYTES = 8_000_000
"""Of a stream; the longest answers of models have about one."""

MOST_WHOLE_BYTES = 32_000_000
"""Of an answer that is one document: it may hold pictures, and is read whole or not at all."""

KEPT_END_BYTES = 65_536
"""What a stream took is told at its end."""

_STREAM = "text/event-stream"

_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')
_PATH_MODEL = re.compile(r"/models/([^/:]{1,200}):")

SPENT, BUSY = 402, 429
"""Clients come again after a 429 and not after a 402, which is right for each."""


@dataclass(frozen=True, slots=True)
class Bill:
    """A request that is paid for: what was set aside, and how its answer is read."""

    wire: Wire
    reserved: Reserved
    streams: bool
    delay_s: float = 0.0


def output_limit(document: Mapping[str, object]) -> int:
    """Return how much the answer to a request may take at most."""
    config = document.get("generationConfig")
    told = [document.get(name) for name in _OUTPUT_LIMITS]
    told.append(config.get("maxOutputTokens") if isinstance(config, dict) else None)
    found = [one for one in told if isinstance(one, int) and one > 0]
    return found[0] if found else USUAL_OUTPUT_TOKENS


def most_of(wire: str, input_tokens: int, output_tokens: int) -> TokenUse:
    """Return the most that a request may take: all of it is new to the cache."""
    if wire == "anthropic":
        return TokenUse(cache_write_tokens=input_tokens, output_tokens=output_tokens)
    return TokenUse(fresh_tokens=input_tokens, output_tokens=output_tokens)


def most_of_unread(incoming: Incoming) -> tuple[str, TokenUse]:
    """Return the model of a request that was not read, and the most it may take."""
    found = _MODEL.search(incoming.raw)
    named = _PATH_MODEL.search(incoming.path)
    model = found[1].decode() if found else named[1] if named else ""
    tokens = len(incoming.raw) // _CHARS_PER_TOKEN
    return model, most_of(incoming.wire, tokens, USUAL_OUTPUT_TOKENS)


def refused(wire: str, error: BudgetSpent, now: datetime) -> Prepared:
    """Return the answer to a request for which there is no money."""
    wait_s = (error.until - now).total_seconds() if error.until else 0.0
    status = BUSY if 0 < wait_s < 60 else SPENT
    told = refusal(_REFUSING.get(wire, "openai"), status, f"Lore: {error} {error.hint}".strip())
    if status == BUSY:
        told = replace(told, headers=(*told.headers, ("retry-after", str(math.ceil(wait_s)))))
    return Prepared(answer=told)


@dataclass(slots=True)
class _Kept:
    """An answer as it came; of one that is too long, its beginning and its end."""

    streams: bool
    _first: list[bytes] = field(default_factory=list)
    _last: deque[bytes] = field(default_factory=deque)
    _first_bytes: int = 0
    _last_bytes: int = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        if self._first_bytes < (MOST_KEPT_BYTES if self.streams else MOST_WHOLE_BYTES):
            self._first.append(piece)
            self._first_bytes += len(piece)
            return
        self._last.append(piece)
        self._last_bytes += len(piece)
        while self._last_bytes - len(self._last[0]) >= KEPT_END_BYTES:
            self._last_bytes -= len(self._last.popleft())

    @property
    def pieces(self) -> list[bytes]:
        """Return what is kept; where some is missing, one event ends and another begins."""
        return [*self._first, b"\n\n", *self._last] if self._last else self._first


@dataclass(slots=True)
class Observing:
    """Reads what upstream answers; several answers where recall stood between them."""

    bill: Bill
    on_end: Callable[[Bill, list[Reply], Outcome], None]
    on_headers: Callable[[Mapping[str, str]], None]
    whole: bool = True
    """Of an answer that is only paid for, nothing is read but what it took."""
    _answers: list[_Kept] = field(default_factory=list)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin to keep an answer."""
        form = headers.get("content-type", "")
        # Its own word goes before what was asked for, which not every request tells.
        streams = form.startswith(_STREAM) if form else self.bill.streams
        self._answers.append(_Kept(streams and status == 200))
        attempt("quotas", partial(self.on_headers, headers))

    def see(self, piece: bytes) -> None:
        """Keep a piece of it: it is read at the end, off the path."""
        self._answers[-1].add(piece)

    def end(self, outcome: Outcome) -> None:
        """Read all that was kept; what cannot be read is no reason to keep money set aside."""
        read = [attempt("read", partial(self._read, one)) for one in self._answers]
        replies = [Reply() if isinstance(one, Failure) else one for one in read]
        self.on_end(self.bill, replies, outcome)

    def _read(self, kept: _Kept) -> Reply:
        reader: ReplyReader = self.bill.wire.open_reader(streams=kept.streams)
        whole = self.whole or not kept.streams
        for piece in kept.pieces if whole else _telling(kept.pieces):
            reader.feed(piece)
        return reader.end()


def _telling(pieces: list[bytes]) -> Iterator[bytes]:
    """Return the events of a stream that tell what it took, or what went wrong."""
    stream = b"".join(pieces).replace(b"\r\n", b"\n")
    for event in stream.split(b"\n\n"):
        if b"usage" in event or b"error" in event:
            yield event + b"\n\n"


def settle(
    memory: Memory,
    bill: Bill,
    replies: list[Reply],
    *,
    layer: int = 0,
    busts: bool = False,
    without: TokenUse | None = None,
) -> None:
    """Enter what a request took, or give back what was set aside if it took nothing."""
    used = total(replies)
    if not used.input_tokens and not used.output_tokens:
        memory.release_request(bill.reserved)
        return
    memory.settle_request(
        bill.reserved, used, layer=layer, busts=busts, delay_s=bill.delay_s, without=without
    )


def total(replies: list[Reply]) -> TokenUse:
    """Return what all answers to a request took together."""
    uses = [reply.use for reply in replies]
    return TokenUse(
        sum(use.fresh_tokens for use in uses),
        sum(use.cache_read_tokens for use in uses),
        sum(use.cache_write_tokens for use in uses),
        sum(use.cache_write_1h_tokens for use in uses),
        sum(use.output_tokens for use in uses),
    )

"""Exchanges: what the proxy hands to whoever plans prompts and records, and takes from it.

The proxy itself (`app`, `forwarding`, `streaming`) knows no format of any provider. What memory
does is plugged in as a `Turning`:

1. `prepare(incoming)` is called once for each request on a known wire, in a worker thread, or in
   the event loop where it is known never to wait. It returns a `Prepared`: another body or None
   for the original bytes, headers for the answer, how long to wait before forwarding, an
   `Observer`, a `Relay`, or an `Answer` in place of all that. It has 150 ms. For one that raises,
   or takes most of that, `go_on` is asked how the request is forwarded with what its session has
   at hand; if that is not there in time either, the original bytes go out. The answer says so in
   `x-lore-degraded`. A `Prepared` that is not used is given back: its observer is told
   `settle("unused")`. Before original bytes go out `admit` is asked, for a budget that is spent is
   spent for these requests too; and for those on no known wire that may cost something, whose
   bodies nobody reads: `wire` and `raw` are empty then. So they are for what only fetches an
   answer that was written in the background. Where `is_limited`, no request goes out
   before `admit` has said so. What a person typed to Lore itself is a `Command`: it may take some
   seconds, and no upstream is ever asked instead.
2. The `Observer` sees a copy of what upstream answers: `begin` with status and headers, `see` for
   each piece of the body as it passes (on the event loop: put it away, read it later), and `end`
   or `settle` exactly once, in a worker thread. Whatever it raises is logged and ends there.
3. A `Relay` stands in the answer itself: `feed` returns what of a piece may go out now, and
   `follow`, once upstream has said all, either returns the next request to upstream, whose answer
   is fed in turn, or None, and then `rest` ends the answer, or an `Answer` that refuses to ask:
   it ends like one that upstream refused. An observer sees what upstream said,
   not what the relay made of it. Only answers with status 200 are spliced.

Credentials are in none of this. With no `Turning`, every byte passes as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from lore.gateway import bodies

Wire = Literal["anthropic", "chat", "responses", "gemini", ""]
"""The format of a request; empty where it is none that Lore reads."""

Provider = Literal["anthropic", "openai", "chatgpt", "gemini"]
"""ChatGPT is where Codex goes for people who logged in with an account instead of a key."""

Outcome = Literal["complete", "aborted", "failed", "unused"]
"""How an answer ended: whole, cut off by the client or by a stop, by upstream, or not begun."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as the client sent it; of its headers and its query, only what memory reads.

    Names of headers are in lower case.
    """

    wire: Wire
    path: str
    query: str
    headers: Mapping[str, str]
    raw: bytes
    most_bytes: int
    provider: Provider = "openai"
    """Whom it is meant for, whatever it speaks."""
    fetched_by: str = ""
    """The id of an answer that it asks for, which was written in the background."""

    @property
    def target(self) -> str:
        """Return the path with what stands behind it: Gemini tells there whether it streams."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def encoding(self) -> str:
        """Return the encoding that the body came in, '' for none."""
        return self.headers.get("content-encoding", "")

    def body(self) -> bytes:
        """Return the body without the encoding it came in; raise where it cannot be read."""
        return bodies.decoded(self.raw, self.encoding, self.most_bytes)


class Observer(Protocol):
    """Sees what upstream answers."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take note of the status of an answer; again for each request of a relay."""

    def see(self, piece: bytes) -> None:
        """Take a copy of the next piece of a body; on the event loop, so it must be quick."""

    def end(self, outcome: Outcome) -> None:
        """Do what is to be done once the exchange is over; called once, off the path."""

    def settle(self, outcome: Outcome) -> None:
        """Do of that only what concerns money, in place of `end`; it never waits for the store."""


class Relay(Protocol):
    """Stands in an answer and may have upstream asked again before it ends."""

    def feed(self, piece: bytes) -> bytes:
        """Return what may go out to the client, given the next piece from upstream."""

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing was asked of it: then it follows with nothing, at once."""

    def follow(self) -> bytes | Answer | None:
        """Return the body of the next request to upstream, None, or the answer in place of one.

        It is called in a worker thread, unless it is idle.
        """

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where upstream refused the next request."""

    def rest(self) -> bytes:
        """Return what ends the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that upstream is not asked for."""

    status: int
    headers: Pairs
    body: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """What a person asks of Lore itself: how it is done, and what is said where that fails."""

    carry_out: Callable[[], Answer]
    excuse: Answer


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a request is forwarded; as it stands, every byte passes as it came."""

    body: bytes | None = None
    headers: Pairs = ()
    """For the answer to the client."""
    delay_s: float = 0.0
    observer: Observer | None = None
    reads: bool = True
    """Whether the observer reads the body; what it does not may be encoded in any way."""
    relay: Relay | None = None
    answer: Answer | None = None
    command: Command | None = None


class Turning(Protocol):
    """What memory does with requests."""

    def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded; called in a worker thread."""

    def go_on(self, incoming: Incoming) -> Prepared | None:
        """Return the same of what the session has at hand; None for what is no turn of one."""

    def find_command(self, incoming: Incoming) -> Command | None:
        """Return what a request that was not prepared in time asks of Lore itself, if it does."""

    def admit(self, incoming: Incoming, until_s: float) -> Prepared:
        """Return the same for a request that goes out as it came: only money is looked at.

        Nothing is waited for longer than until a moment of the monotonic clock.
        """

    def may_wait(self) -> bool:
        """Tell whether `prepare` does more than `admit`, or either may wait for the store."""

    def is_limited(self) -> bool:
        """Tell whether there is a budget by now."""

"""Fetching: what a model wrote in the background tells what it took once it is asked for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lore.errors import InvalidInput
from lore.gateway.apis import openai_responses
from lore.gateway.apis.wire import Reply
from lore.gateway.exchanges import Outcome
from lore.gateway.keeping import WELL, Kept
from lore.gateway.taking import Answered, take
from lore.memory import Memory
from lore.records import Course, Entry, Speaker, TokenUse

PROVIDER = "openai"
"""Who writes in the background."""

MOST_AWAITED = 32
"""Turns whose answers are awaited: each holds all that was said, some megabytes at most. Of the
others only the money is entered."""

_UNKNOWN = TokenUse()
"""The prompt is as long as it was entered."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """A turn whose answer is written in the background, and who stores it with that."""

    speaker: Speaker
    entries: tuple[Entry, ...]
    unstored: frozenset[str]
    """Keys of the entries that were not stored when it began to be awaited."""
    store: Callable[[Sequence[Reply]], object]


class AwaitedTurns:
    """Turns whose answers are written in the background, until those are fetched."""

    def __init__(self, most: int = MOST_AWAITED) -> None:
        self._most = most
        self._turns: OrderedDict[str, Awaited] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, fetched_by: str, turn: Awaited) -> None:
        """Keep a turn whose answer is fetched by an id."""
        with self._lock:
            self._turns[fetched_by] = turn
            while len(self._turns) > self._most:
                self._turns.popitem(last=False)

    def take(self, fetched_by: str) -> Awaited | None:
        """Return the turn whose answer is there, once."""
        with self._lock:
            return self._turns.pop(fetched_by, None)

    def keep(self, is_kept: Callable[[Awaited], bool]) -> None:
        """Await no more turns than those that are to be kept, which may take a while to tell."""
        with self._lock:
            held = dict(self._turns)
        for fetched_by, turn in held.items():
            if not is_kept(turn):
                self.take(fetched_by)


@dataclass(slots=True)
class Fetching:
    """Reads an answer that is fetched, and has entered what it took if it has come to its end."""

    memory: Memory
    fetched_by: str
    on_answer: Callable[[str, Reply], None]
    _kept: Kept | None = None

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin to keep an answer."""
        self._kept = Kept.of(status, headers, streams=False)

    def see(self, piece: bytes) -> None:
        """Keep a piece of it."""
        if self._kept is not None:
            self._kept.add(piece)

    def end(self, outcome: Outcome) -> None:
        """Enter what it took, and hand over what it says."""
        reply = self._settled(outcome)
        if reply is not None:
            self.on_answer(self.fetched_by, reply)

    def settle(self, outcome: Outcome) -> None:
        """Enter what it took."""
        self._settled(outcome)

    def _settled(self, outcome: Outcome) -> Reply | None:
        del outcome  # One that was cut off tells of no end.
        reply = self._read()
        if self._kept is None or reply is None or not reply.stop or reply.goes_on:
            return None
        taken = take([Answered(self._kept.status, reply)], _UNKNOWN)
        course = Course(estimated=taken.estimated, service=taken.service)
        self.memory.correct_request(self.fetched_by, taken.use, course, provider=PROVIDER)
        return reply

    def _read(self) -> Reply | None:
        if self._kept is None or self._kept.status not in WELL:
            return None
        try:
            body = self._kept.body()
        except InvalidInput:
            return None
        reader = openai_responses.open_reader(streams=self._kept.streams)
        reader.feed(body)
        return reader.end()

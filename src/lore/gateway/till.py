"""The till: money is set aside for a request, it waits its turn, and what it took is entered."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from lore.errors import BudgetSpent
from lore.gateway import paying
from lore.gateway.apis.wire import Reply, Wire
from lore.gateway.exchanges import Answer, Incoming, Prepared
from lore.gateway.fetching import Fetching
from lore.gateway.paying import PROVIDERS, Bill, Ended, Further, Observing, Unread
from lore.gateway.routing import label_of
from lore.memory import Memory
from lore.memory.pacing import Pacing
from lore.records import Reserved, Speaker, TokenUse


@dataclass(frozen=True, slots=True)
class Order:
    """What a request asks for: of which model, and how much at most."""

    model: str
    most: TokenUse
    service: str
    streams: bool
    kind: str = "errand"
    speaker: Speaker | None = None
    counted: bool = False
    """Its length is known by what the provider counted before."""


class Till:
    """Sets money aside before requests and enters what they took, of every kind."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.pacing = Pacing(memory)

    @contextmanager
    def open_bill(
        self,
        incoming: Incoming,
        wire: Wire,
        order: Order,
        *,
        cache_left_s: float | None = None,
        until_s: float = math.inf,
    ) -> Iterator[Bill]:
        """Set money aside for a request, or raise `BudgetSpent`; given back if the block fails."""
        provider = PROVIDERS[incoming.wire]
        reserved = self._reserve(provider, order, order.most, until_s=until_s)
        is_handed_over = False
        try:
            free = reserved.usd == 0
            delay_s = self.pacing.delay_s(provider, cache_left_s=cache_left_s, free=free)
            prompt = paying.prompt_of(order.most, counted=order.counted)
            reserve = partial(self._reserve, provider, order)
            further = Further(self._memory, reserved, order.most, reserve)
            yield Bill(wire, reserved, order.streams, prompt, further, delay_s)
            is_handed_over = True
        finally:
            if not is_handed_over:
                self._memory.release_request(reserved)

    def refused(self, incoming: Incoming, error: BudgetSpent) -> Prepared:
        """Return the answer to a request for which there is no money."""
        return paying.refused(paying.refusing(incoming), error, self._memory.database.now())

    def observe(
        self,
        incoming: Incoming,
        bill: Bill,
        on_end: Callable[[Ended], None],
        *,
        on_begin: Callable[[], None] | None = None,
        on_use: Callable[[], None] | None = None,
        whole: bool = True,
    ) -> Observing:
        """Return who reads the answer to a request.

        `on_begin` is told that there is one, `on_use` that upstream has taken the prompt.
        """
        note = partial(self._note_headers, PROVIDERS[incoming.wire], on_begin)
        return Observing(bill, on_end, self.settle, note, on_use, whole)

    def pay_further(
        self, incoming: Incoming, observer: Observing, first_bytes: int, body: bytes
    ) -> Answer | None:
        """Set money aside for a further request of an answer, or return why there is none."""
        try:
            observer.pay_further(first_bytes, body)
        except BudgetSpent as error:
            return self.refused(incoming, error).answer
        return None

    def settle(self, ended: Ended) -> None:
        """Enter what a request took."""
        paying.settle(self._memory, ended)

    def pass_unread(self, incoming: Incoming, until_s: float) -> Prepared:
        """Let a request pass in a form that is not read, while there is any money."""
        name, within_s = label_of(incoming.path), _left(until_s)
        try:
            reserved = self._memory.reserve_request(name, None, kind="other", within_s=within_s)
        except BudgetSpent as error:
            return self.refused(incoming, error)
        return Prepared(observer=Unread(self._memory, reserved), reads=False)

    def fetch(self, fetched_by: str, on_answer: Callable[[str, Reply], None]) -> Prepared:
        """Let an answer pass that was paid for when it was asked for, and read what it took."""
        return Prepared(observer=Fetching(self._memory, fetched_by, on_answer))

    def _reserve(
        self, provider: str, order: Order, most: TokenUse, *, until_s: float = math.inf
    ) -> Reserved:
        return self._memory.reserve_request(
            order.model,
            most,
            provider=provider,
            service=order.service,
            session=order.speaker.session if order.speaker else "",
            project=order.speaker.project if order.speaker else "",
            kind=order.kind,
            within_s=_left(until_s),
        )

    def _note_headers(
        self, provider: str, on_begin: Callable[[], None] | None, headers: Mapping[str, str]
    ) -> None:
        """Take note of what an answer says before its body."""
        if on_begin is not None:
            on_begin()
        self.pacing.note_quotas(provider, headers)


def _left(until_s: float) -> float | None:
    """Return how long it is until a moment of the monotonic clock, None where there is no end."""
    return None if until_s == math.inf else max(0.0, until_s - time.monotonic())

"""Errands: requests that are no turns of a session; they are paid for, and not remembered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lore.errors import BudgetSpent
from lore.gateway import paying
from lore.gateway.apis import anthropic
from lore.gateway.apis.registry import WIRES
from lore.gateway.apis.wire import Reply, Request, Wire
from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Incoming, Prepared
from lore.gateway.glancing import glance, is_cached_long
from lore.gateway.latest import LatestMarkers
from lore.gateway.paying import Ended
from lore.gateway.recalling import Recalling
from lore.gateway.speakers import Said, find_speaker
from lore.gateway.till import Order, Till
from lore.gateway.turn import delay_headers
from lore.memory.composing import Composer
from lore.records import Speaker

COUNTING = "/count_tokens"
"""What only counts is free."""


class Errands:
    """Lets requests pass as they came, or nearly so, if there is money for them."""

    def __init__(
        self,
        composer: Composer,
        till: Till,
        latest: LatestMarkers,
        on_answer: Callable[[str, Reply], None],
    ) -> None:
        """Open it; `on_answer` is told what was written in the background once it is fetched."""
        self._composer = composer
        self._till = till
        self._latest = latest
        self._on_answer = on_answer

    def admit(
        self, incoming: Incoming, until_s: float, on_end: Callable[[Ended], None] | None = None
    ) -> Prepared:
        """Return how a request is forwarded that memory has no time for.

        `on_end` is told what came of it in the place of the till.
        """
        if incoming.fetched_by:
            return self._till.fetch(incoming.fetched_by, self._on_answer)
        wire = WIRES.get(incoming.wire)
        if wire is None:
            return self._till.pass_unread(incoming, until_s)
        if incoming.path.endswith(COUNTING):
            return Prepared()
        seen = attempt("glance", partial(glance, incoming))
        if isinstance(seen, Failure):
            return self._till.pass_unread(incoming, until_s)
        limit = paying.output_limit(seen.asks, seen.model)
        most = paying.most_of_bytes(incoming.wire, seen.length, limit, long=seen.long)
        service, whose = paying.service_of(seen.asks), find_speaker(Said(incoming.headers, {}, ()))
        order = Order(seen.model, most, service, seen.streams, speaker=whose)
        mended = attempt("mend", partial(self._mended, incoming))
        body = mended if isinstance(mended, bytes) else None
        try:
            with self._till.open_bill(incoming, wire, order, until_s=until_s) as bill:
                observer = self._till.observe(
                    incoming, bill, on_end or self._till.settle, whole=on_end is not None
                )
                told = delay_headers(bill.delay_s)
                return Prepared(body, told, delay_s=bill.delay_s, observer=observer)
        except BudgetSpent as error:
            return self._till.refused(incoming, error)

    def _mended(self, incoming: Incoming) -> bytes | None:
        """Return a body whose turn began with memory and goes on without, if it has to change."""
        if incoming.wire != "anthropic":
            return None  # elsewhere, markers are texts like others
        body = incoming.body()
        mended = anthropic.mend(body, self._latest.find)
        return mended if mended is not body else None

    def pass_on(  # noqa: PLR0913 - what is asked, as what, and whose it is
        self,
        incoming: Incoming,
        wire: Wire,
        request: Request,
        *,
        body: bytes | None = None,
        relay: Recalling | None = None,
        speaker: Speaker | None = None,
        bare: bool = False,
        retold: bool = False,
        on_end: Callable[[Ended], None] | None = None,
    ) -> Prepared:
        """Let a request pass that was read, with another body if there is one.

        A session that is passed `bare` has no memory from then on; of one that is `retold`, the
        answer may tell what was not to be stored. `on_end` as in `admit`.
        """
        limit = paying.output_limit(request.document, request.dialogue.model)
        sent = request.body if body is None else body
        long = is_cached_long(request.body)
        most = paying.most_of_bytes(incoming.wire, len(sent), limit, long=long)
        service = paying.service_of(request.document)
        order = Order(request.dialogue.model, most, service, request.streams)
        on_begin: Callable[[], None] | None = None
        told_end, left_s = on_end or self._till.settle, None
        if speaker is not None:
            left_s = self._composer.cache_left_s(speaker)
            on_begin = partial(self._composer.pass_bare, speaker) if bare else None
            told_end = partial(self._end_retelling, speaker) if retold else told_end
        try:
            with self._till.open_bill(incoming, wire, order, cache_left_s=left_s) as bill:
                whole = retold or on_end is not None
                observer = self._till.observe(
                    incoming, bill, told_end, on_begin=on_begin, whole=whole
                )
                if relay is not None:
                    pay = partial(self._till.pay_further, incoming, observer, len(sent))
                    relay.pay_with(pay)
                told = delay_headers(bill.delay_s)
                return Prepared(body, told, bill.delay_s, observer, relay=relay)
        except BudgetSpent as error:
            return self._till.refused(incoming, error)

    def _end_retelling(self, speaker: Speaker, ended: Ended) -> None:
        """Let a summary never be stored that may tell what was not to be."""
        self._till.settle(ended)
        retold = [reply.entry for reply in ended.replies if reply.entry is not None]
        self._composer.desk.leave_unsaid(speaker, retold)

"""Recalling: recall as part of an answer, between the proxy, the wire and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from lore.errors import LoreError, StoreBusy
from lore.gateway.apis.wire import Call, Splice
from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Answer

Search = Callable[[Call], str]
"""Carries out a call; what it raises of Lore's own, the model is told as a failure."""

Pay = Callable[[bytes], Answer | None]
"""Sets money aside for a further request, or returns the answer to one for which there is none."""

Keep = Callable[[Mapping[str, str]], None]
"""Stores calls with their results, by the ids of their markers."""


class Recalling:
    """Stands in an answer as the proxy's relay: searches, keeps, and asks the upstream again."""

    def __init__(self, splice: Splice, search: Search, keep: Keep) -> None:
        self._splice = splice
        self._search = search
        self._keep = keep
        self._held = b""
        """What the client has still to get."""
        self._pay: Pay = lambda _body: None
        self.asked = b""
        """The last request that upstream was asked besides the first."""

    def pay_with(self, pay: Pay) -> None:
        """Pay for each further request before it is asked."""
        self._pay = pay

    def feed(self, piece: bytes) -> bytes:
        """Return what may go out to the client, given the next piece from upstream."""
        return self._released() + self._splice.feed(piece)

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing was asked of it: then it follows with nothing, at once."""
        return self._splice.is_idle

    def follow(self) -> bytes | Answer | None:
        """Return the body of the next request to upstream, None, or why there is no money for it.

        What was found is kept in any case.
        """
        self._held += self._splice.pause()
        results = self._searched()
        goes_on = self._splice.goes_on
        stored = self._splice.answer(results)
        # A marker that could not be stored is known for as long as this process runs.
        with suppress(LoreError):
            if stored:
                self._keep(stored)
        if not goes_on:
            return None
        body = self._splice.follow_up()
        refused = self._pay(body)
        if refused is not None:
            return refused
        self.asked = body
        return body

    def _searched(self) -> dict[str, str]:
        """Return what was found, by the ids of calls; the others of them failed."""
        results: dict[str, str] = {}
        for call in self._splice.calls:
            found = attempt("recall", partial(self._search, call))
            if not isinstance(found, Failure):
                results[call.id] = found
            elif found.kind == StoreBusy.__name__:
                break  # The next would wait as long.
        return results

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where upstream refused the next request."""
        return self._released() + self._splice.fail(status, body)

    def rest(self) -> bytes:
        """Return what ends the answer."""
        return self._released()

    def _released(self) -> bytes:
        held, self._held = self._held, b""
        return held

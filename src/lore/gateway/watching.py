"""Watching: who sees what upstream answers may fail, or not be there yet, without harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from lore.gateway.boundary import Failure, attempt
from lore.gateway.exchanges import Observer, Outcome, Prepared
from lore.gateway.keeping import Kept

Later = Callable[[Observer, Outcome, int], None]
"""Has an observer told how an answer ended, off the path; with how many bytes it holds."""

Admission = Future[Prepared | Failure]
"""Whether there is money for a request, which is still looked at."""


class Watched:
    """An observer that is asked nothing more once it has failed; `end` is told in any case."""

    def __init__(
        self, observer: Observer | None, later: Later | None = None, held_bytes: int = 0
    ) -> None:
        self._observer = observer
        self._later = later
        self._held_bytes = held_bytes
        self._sound = observer is not None
        self._over = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Pass on the status of an answer."""
        if self._sound and self._observer is not None:
            self._try(partial(self._observer.begin, status, headers))

    def see(self, piece: bytes) -> None:
        """Pass on a piece of the body."""
        if self._sound and self._observer is not None:
            self._held_bytes += len(piece)
            self._try(partial(self._observer.see, piece))

    def end(self, outcome: Outcome) -> None:
        """Pass on how the answer ended, once and off the path."""
        if self._over or self._observer is None or self._later is None:
            return
        self._over = True
        self._later(self._observer, outcome, self._held_bytes)

    def _try(self, work: Callable[[], None]) -> None:
        self._sound = not isinstance(attempt("record", work), Failure)


class Arriving:
    """Stands for an observer that is not there yet, and tells it all once it is and all is over.

    A request that could not be admitted in time passes, and is counted nevertheless. Nobody waits
    for that.
    """

    def __init__(self, admission: Admission, later: Later, held_bytes: int = 0) -> None:
        """Stand in; `later` as in `Watched`, for who comes when nobody records any more."""
        self._admission = admission
        self._later = later
        self._held_bytes = held_bytes
        self._answers: list[tuple[Kept, Mapping[str, str]]] = []

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Keep the status of an answer."""
        self._answers.append((Kept.of(status, headers, streams=False), headers))

    def see(self, piece: bytes) -> None:
        """Keep a piece of the body."""
        self._answers[-1][0].add(piece)

    def end(self, outcome: Outcome) -> None:
        """Have all told that was kept: now, or when there is someone to tell it to."""
        later = _end_now if self._admission.done() else self._later
        self._admission.add_done_callback(partial(self._tell, outcome, later))

    def settle(self, outcome: Outcome) -> None:
        """Have of that only settled what concerns money."""
        self._admission.add_done_callback(partial(self._tell, outcome, _settle_now))

    def _tell(self, outcome: Outcome, later: Later, admission: Admission) -> None:
        found = None if admission.cancelled() else admission.result()
        observer = found.observer if isinstance(found, Prepared) else None
        watched = Watched(observer, later, self._held_bytes)
        for kept, headers in self._answers:
            watched.begin(kept.status, headers)
            for piece in kept.pieces:
                watched.see(piece)
        watched.end(outcome)


def _end_now(observer: Observer, outcome: Outcome, _held_bytes: int) -> None:
    attempt("record", partial(observer.end, outcome))


def _settle_now(observer: Observer, outcome: Outcome, _held_bytes: int) -> None:
    attempt("settle", partial(observer.settle, outcome))

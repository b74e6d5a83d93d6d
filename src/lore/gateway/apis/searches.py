"""Searches: the calls of recall in one answer of an upstream, and how many there may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lore.gateway.apis import markers
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.shapes import Json
from lore.gateway.apis.wire import MOST_RECALLS, Call, MakeId


@dataclass(frozen=True, slots=True)
class _Search:
    call: Call
    block: Json
    place: int


class Searches:
    """Counts the searches of a request, and holds those of the answer at hand."""

    def __init__(self, make_id: MakeId) -> None:
        self._make_id = make_id
        self._done = 0
        self._held: list[_Search] = []
        self.is_spent = False
        """All searches were made before this answer: who asks for more is stopped."""
        self.answered: list[Marker] = []
        """The searches of this answer with their results."""

    def __bool__(self) -> bool:
        return bool(self._held)

    def begin(self) -> None:
        """Begin with the next answer."""
        self._held, self.answered = [], []
        self.is_spent = self._done >= MOST_RECALLS

    def add(self, call_id: str, arguments: Json, block: Json, place: int) -> tuple[str, str]:
        """Take a call in the wire's words; return the id of its marker, and what is shown of it."""
        marker = self._make_id()
        self._held.append(_Search(Call(call_id, marker, arguments), block, place))
        shown = markers.apart(markers.ENOUGH) if self.is_spent else markers.sign(marker)
        return marker, shown

    def has(self, place: int) -> bool:
        """Tell whether a call of this answer stands in a place."""
        return any(one.place == place for one in self._held)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls to be carried out now."""
        if self.answered:
            return ()
        return tuple(one.call for one in self._held[: max(0, MOST_RECALLS - self._done)])

    @property
    def last_place(self) -> int:
        """Return where the last call stands in its answer."""
        return max((one.place for one in self._held), default=0)

    def answer(
        self,
        results: Mapping[str, str],
        *,
        tail: int = 0,
        is_mixed: bool = False,
        extra: Json | None = None,
    ) -> dict[str, str]:
        """Take results by the ids of calls; return what is to be stored, by the ids of markers."""
        if self.is_spent:
            return {}
        allowed = [call.id for call in self.calls]
        self._done += len(allowed)
        last = allowed[-1] if allowed and self._done >= MOST_RECALLS else None
        stored: dict[str, str] = {}
        for one in self._held:
            known = one.call.id in allowed
            said = results.get(one.call.id, markers.FAILED) if known else markers.LIMIT
            if one.call.id == last:
                said = f"{said}\n\n{markers.LIMIT}"
            round_id = self._held[0].call.marker
            marker = Marker(one.block, said, round_id, tail, is_mixed, one.place, extra or {})
            self.answered.append(marker)
            stored[one.call.marker] = marker.write()
        return stored

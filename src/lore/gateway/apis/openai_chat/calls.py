"""Calls: those of one streamed answer of Chat Completions, put together from their pieces."""

from __future__ import annotations

from typing import NamedTuple

from lore.gateway.apis import shapes
from lore.gateway.apis.shapes import Json, table, text


class Piece(NamedTuple):
    """A piece of a call, the call's place among all of the answer, and the number it was given."""

    told: Json
    place: int
    number: int


class Calls:
    """Tells the calls of an answer apart.

    Each has a number of its own, but some servers give all the first, or none at all: there
    another id is another call, and so is another name without one.
    """

    def __init__(self) -> None:
        self.by_place: dict[int, Json] = {}
        self._latest: dict[int, int] = {}
        """The place of the last call that was given a number."""

    def take(self, delta: Json) -> list[Piece]:
        """Take the calls of a delta, and return each with its place."""
        pieces: list[Piece] = []
        for at, told in enumerate(shapes.found(delta.get("tool_calls"))):
            given = told.get("index")
            number = given if isinstance(given, int) else at
            place = self._place_of(told, number)
            self._add(place, told)
            pieces.append(Piece(told, place, number))
        return pieces

    def _place_of(self, told: Json, number: int) -> int:
        place = self._latest.get(number)
        if place is None or _is_another(self.by_place[place], told):
            known = None if place is None else self._find(text(told.get("id")))
            place = self._free_place(number) if known is None else known
        self._latest[number] = place
        return place

    def _find(self, call_id: str) -> int | None:
        """Return where a call stands whose pieces come between those of another."""
        for place, call in self.by_place.items():
            if call_id and call.get("id") == call_id:
                return place
        return None

    def _free_place(self, number: int) -> int:
        return number if number not in self.by_place else max(self.by_place) + 1

    def _add(self, place: int, told: Json) -> None:
        held = self.by_place.setdefault(place, {})
        function, more = table(held.get("function")), table(told.get("function"))
        written = text(function.get("arguments")) + text(more.get("arguments"))
        held |= {name: value for name, value in told.items() if name != "index" and value}
        held["function"] = {**function, **more, "arguments": written}


def _is_another(held: Json, told: Json) -> bool:
    """Tell whether a piece that was given the number of a call is of another one."""
    if text(held.get("id")) and text(told.get("id")):
        return bool(held["id"] != told["id"])
    name = text(table(told.get("function")).get("name"))
    return bool(name) and name != text(table(held.get("function")).get("name"))

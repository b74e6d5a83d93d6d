"""Joining the answers of OpenAI's Responses in which the model calls recall into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from lore.gateway import events
from lore.gateway.apis import shapes, summing
from lore.gateway.apis.openai_responses.expanding import called, unnamed
from lore.gateway.apis.openai_responses.reading import items_of
from lore.gateway.apis.openai_responses.replies import Assembly, message_events, message_of
from lore.gateway.apis.rounds import Rounds
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import MakeId, Request, Tool
from lore.gateway.events import Event
from lore.gateway.refusals import error_of


class Splice(Rounds):
    """Makes one answer of several; see the protocol.

    Where the provider keeps the history (`store`), the client names answers by their ids and
    cannot be shown one of several: recall is not to be offered there.
    """

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._usages: list[Json] = []
        self._id = ""
        self._number = 0
        """The number of the client's next event."""
        self._shown: list[Json] = []
        """What the client has got, item by item."""
        self._next = 0

    def _begin(self) -> None:
        super()._begin()
        self._assembly = Assembly()
        self._places: dict[int, int] = {}
        self._withheld: set[int] = set()
        self._has_client_calls = False

    @property
    def _is_alone(self) -> bool:
        """Tell whether the answer waits for nothing but results of ours."""
        is_done = self._assembly.response.get("status") == "completed"
        return bool(self._searches) and not self._has_client_calls and is_done

    def answer(self, results: Mapping[str, str]) -> dict[str, str]:
        """Take results by the ids of calls; return what is to be stored, by the ids of markers."""
        return self._searches.answer(results, is_mixed=self._has_client_calls)

    def follow_up(self) -> bytes:
        """Return the body of the next request to the upstream."""
        document = shapes.read(self._body)
        document["input"] = [*items_of(document), *self._said()]
        self._body = shapes.written(document)
        self._begin()
        return self._body

    def _said(self) -> Iterator[Json]:
        """Yield what the model said, each call with its result."""
        answered = {text(one.call.get("call_id")): one for one in self._searches.answered}
        for item in _kept(self._assembly.output):
            if self._is_ours(item) and text(item.get("call_id")) in answered:
                yield from called(answered[text(item.get("call_id"))])
            else:
                yield item

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where the upstream did not go on, in its own words."""
        error = error_of("openai", status, body)
        if not self._streams:
            return error
        told = table(table(shapes.loaded(error.decode())).get("error"))
        code = told.get("code") or told.get("type")
        said = {"code": code, "message": text(told.get("message")), "param": told.get("param")}
        return self._write({"type": "error", **said})

    def _write(self, told: Json) -> bytes:
        numbered = {**told, "sequence_number": self._number}
        self._number += 1
        return events.write(numbered, text(told.get("type")))

    def _pass(self, event: Event) -> bytes:
        """Return what the client gets of an event."""
        told = event.document()
        kind, at = text(told.get("type")), told.get("output_index")
        self._assembly.take(told)
        if isinstance(at, int):
            return self._pass_item(event, told, at)
        if not kind.startswith("response."):
            return event.raw
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._id = self._id or text(table(told.get("response")).get("id"))
            return b"" if self._round > 1 else self._unchanged(event)
        if self._assembly.response:
            self._usages.append(table(self._assembly.response.get("usage")))
            untold = self._mark_untold()
            if not self._is_last:
                return untold
            if self._round > 1 or self._searches:
                joined = self._joined(self._assembly.response)
                return untold + self._write({**told, "response": joined})
        return self._unchanged(event) if self._round == 1 else self._write(told)

    def _mark_untold(self) -> bytes:
        """Show markers of calls that only the end of an answer tells."""
        marked = b""
        for at, item in enumerate(shapes.found(self._assembly.response.get("output"))):
            if (
                self._is_ours(item)
                and not self._searches.has(at)
                and at not in self._assembly.items
            ):
                self._assembly.items[at] = item
                marked += self._mark(item, at)
        return marked

    def _unchanged(self, event: Event) -> bytes:
        self._number += 1
        return event.raw

    def _pass_item(self, event: Event, told: Json, at: int) -> bytes:
        kind, item = told.get("type"), table(told.get("item"))
        if kind == "response.output_item.added":
            if self._is_ours(item):
                self._withheld.add(at)
                return b""
            self._has_client_calls = self._has_client_calls or _is_call(item)
            self._places[at] = self._next
            self._next += 1
        if at in self._withheld or self._is_ours(item):
            return self._mark(item, at) if kind == "response.output_item.done" else b""
        if kind == "response.output_item.done":
            self._shown.append(item)
        place = self._places.get(at, at)
        if place == at and self._number == told.get("sequence_number", self._number):
            return self._unchanged(event)
        return self._write({**told, "output_index": place})

    def _is_ours(self, item: Json) -> bool:
        return item.get("type") == "function_call" and item.get("name") == self._tool

    def _mark(self, item: Json, at: int) -> bytes:
        """Show a marker in the place of a call; a call that was cut off leaves nothing."""
        shown = {} if self._searches.has(at) else self._marker(item, at)
        if not shown:
            return b""
        made = message_events(self._next, shown)
        self._next += 1
        return b"".join(map(self._write, made))

    def _marker(self, item: Json, at: int) -> Json:
        given = shapes.arguments(shapes.loaded(text(item.get("arguments")) or "{}"))
        if given is None and item.get("status") == "incomplete":
            self._assembly.items.pop(at, None)
            return {}
        if given is None:
            given, item = {}, {**item, "arguments": "{}"}
        marker, sign = self._searches.add(text(item.get("call_id")), given, item, at)
        shown = message_of(f"msg_{marker}", sign)
        self._shown.append(shown)
        return shown

    def _joined(self, response: Json) -> Json:
        usage = summing.added([one for one in self._usages if one])
        joined = {**response, "output": self._shown, "usage": usage or None}
        return {**joined, "id": self._id} if self._id else joined

    def _pass_whole(self, body: bytes) -> bytes:
        """Return what the client gets of an answer that came as one document."""
        response = table(shapes.loaded(body.decode(errors="replace")))
        if "output" not in response:
            return body
        self._id = self._id or text(response.get("id"))
        self._usages.append(table(response.get("usage")))
        self._assembly.response = response
        items = shapes.found(response.get("output"))
        self._assembly.items = dict(enumerate(items))
        for at, item in enumerate(items):
            if self._is_ours(item):
                self._marker(item, at)
                continue
            self._has_client_calls = self._has_client_calls or _is_call(item)
            self._shown.append(item)
        if not self._is_last:
            return b""
        if self._round == 1 and not self._searches:
            return body
        return orjson.dumps(self._joined(response))


def _kept(items: list[Json]) -> list[Json]:
    """Return what can be said again of an answer.

    Thoughts that did not come encrypted nobody has kept. What followed them is bound to them by
    its id, and only words and calls are taken without one.
    """
    if not any(_is_lost(one) for one in items):
        return items
    return [unnamed(one) for one in items if one.get("type") == "message" or _is_call(one)]


def _is_lost(item: Json) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _is_call(item: Json) -> bool:
    """Tell whether the client has to answer an item."""
    return text(item.get("type")).endswith("_call") and bool(item.get("call_id"))


open_splice = Splice

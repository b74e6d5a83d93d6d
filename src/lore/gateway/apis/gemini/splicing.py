"""Joining the answers of Gemini's generateContent in which the model calls recall into one."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from lore.gateway import events
from lore.gateway.apis import shapes, summing
from lore.gateway.apis.gemini.expanding import result_of
from lore.gateway.apis.gemini.reading import field
from lore.gateway.apis.gemini.replies import Assembly
from lore.gateway.apis.rounds import Rounds
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import MakeId, Request, Tool
from lore.gateway.events import Event
from lore.gateway.refusals import error_of


class Splice(Rounds):
    """Makes one answer of several; see the protocol."""

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._usages: list[Json] = []
        """What the answers before this one took."""
        self._shown: list[Json] = []
        """What the client gets of answers that are not streamed."""
        self._id = ""

    def _begin(self) -> None:
        super()._begin()
        self._assembly = Assembly()
        self._has_client_calls = False

    @property
    def _is_alone(self) -> bool:
        """Tell whether the answer waits for nothing but results of ours."""
        has_ours = bool(self._searches) and not self._has_client_calls
        return has_ours and self._assembly.stop == "STOP"

    def answer(self, results: Mapping[str, str]) -> dict[str, str]:
        """Take results by the ids of calls; return what is to be stored, by the ids of markers."""
        tail = len(self._assembly.parts) - 1 - self._searches.last_place
        return self._searches.answer(results, tail=tail, is_mixed=self._has_client_calls)

    def follow_up(self) -> bytes:
        """Return the body of the next request to the upstream."""
        document = shapes.read(self._body)
        answered = [result_of(one) for one in self._searches.answered]
        document["contents"] = [
            *shapes.tables(document["contents"]),
            {"role": "model", "parts": self._assembly.parts},
            {"role": "user", "parts": answered},
        ]
        self._body = shapes.written(document)
        self._usages.append(self._assembly.usage)
        self._begin()
        return self._body

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where the upstream did not go on, in its own words."""
        error = error_of("gemini", status, body)
        return events.frame(error) if self._streams else error

    def _pass(self, event: Event) -> bytes:
        """Return what the client gets of an event."""
        told = event.document()
        shown = self._take(told)
        if shown == told:
            return event.raw
        candidates = shapes.found(shown.get("candidates"))
        content = table(candidates[0].get("content")) if candidates else {}
        if not content.get("parts") and not self._is_last:
            return b""
        return events.write(shown)

    def _take(self, told: Json) -> Json:
        """Take a piece of an answer, and return it as the client sees it."""
        candidates = shapes.found(told.get("candidates"))
        parts = shapes.found(table(candidates[0].get("content")).get("parts")) if candidates else []
        shown_parts: list[Json] = []
        stop = text(candidates[0].get("finishReason")) if candidates else ""
        self._assembly.take({**told, "candidates": []})
        for part in parts:
            piece = {"candidates": [{"content": {"parts": [part]}}]}
            self._assembly.take(piece)
            shown_parts.append(self._shown_of(part))
        self._assembly.stop = stop or self._assembly.stop
        self._id = self._id or text(told.get("responseId"))
        shown = dict(told)
        if shown_parts != parts or (stop and self._is_alone):
            candidate = dict(candidates[0])
            candidate["content"] = {**table(candidate.get("content")), "parts": shown_parts}
            if stop and not self._is_last:
                candidate.pop("finishReason")
            shown["candidates"] = [candidate]
        if self._round > 1:
            if "usageMetadata" in told:
                usages = [*self._usages, table(told["usageMetadata"])]
                shown["usageMetadata"] = summing.added(usages)
            if "responseId" in told:
                shown["responseId"] = self._id
        return shown

    def _shown_of(self, part: Json) -> Json:
        call = field(part, "functionCall")
        if not call:
            return part
        if call.get("name") != self._tool:
            self._has_client_calls = True
            return part
        place = len(self._assembly.parts) - 1
        # Without an id of its own a call is known by its place.
        call_id = text(call.get("id")) or f"{self._round}.{place}"
        given = shapes.arguments(call.get("args") or {})
        if given is None:
            given, part = {}, {**part, "functionCall": {**call, "args": {}}}
            self._assembly.parts[place] = part
        return {"text": self._searches.add(call_id, given, part, place)[1]}

    def _pass_whole(self, body: bytes) -> bytes:
        """Return what the client gets of an answer that came as one document."""
        told = table(shapes.loaded(body.decode(errors="replace")))
        if not told.get("candidates"):
            return body
        shown = self._take(told)
        candidate = shapes.found(shown["candidates"])[0]
        content = table(candidate.get("content"))
        self._shown += shapes.found(content.get("parts"))
        if not self._is_last:
            return b""
        if shown == told and self._round == 1:
            return body
        whole = {**candidate, "content": {**content, "parts": self._shown}}
        return orjson.dumps({**shown, "candidates": [whole]})


open_splice = Splice

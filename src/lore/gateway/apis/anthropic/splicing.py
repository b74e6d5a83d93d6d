"""Joining the answers of Anthropic's Messages in which the model calls recall into one."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from lore.gateway import events
from lore.gateway.apis import shapes, summing
from lore.gateway.apis.anthropic.expanding import result_of
from lore.gateway.apis.anthropic.reading import is_said
from lore.gateway.apis.anthropic.replies import Assembly, text_events
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
        """What each answer took."""
        self._next = 0
        """The number of the client's next block."""
        self._shown: list[Json] = []
        """What the client gets of an answer that is not streamed."""
        self._container: Json = {}
        """Where the API has carried out code of the model."""

    def _begin(self) -> None:
        super()._begin()
        self._assembly = Assembly()
        self._places: dict[int, int] = {}
        self._withheld: set[int] = set()
        self._broken: list[Json] = []
        """Calls whose arguments are none: cut off, or to be told that they failed."""
        self._has_client_calls = False

    @property
    def _is_alone(self) -> bool:
        """Tell whether the answer waits for nothing but results of ours."""
        calls = bool(self._searches) and not self._has_client_calls
        return calls and self._assembly.stop == "tool_use"

    def answer(self, results: Mapping[str, str]) -> dict[str, str]:
        """Take results by the ids of calls; return what is to be stored, by the ids of markers."""
        last = self._searches.last_place
        blocks = self._assembly.blocks
        tail = sum(at > last and is_said(blocks[at]) for at in blocks)
        return self._searches.answer(results, tail=tail, is_mixed=self._has_client_calls)

    def follow_up(self) -> bytes:
        """Return the body of the next request to the upstream."""
        document = shapes.read(self._body)
        document["messages"] = [
            *shapes.tables(document["messages"]),
            {"role": "assistant", "content": self._assembly.content},
            {"role": "user", "content": [result_of(one) for one in self._searches.answered]},
        ]
        if self._container:
            given, told = document.get("container"), self._container.get("id")
            document["container"] = {**given, "id": told} if isinstance(given, dict) else told
        self._body = shapes.written(document)
        self._begin()
        return self._body

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where the upstream did not go on, in its own words."""
        error = error_of("anthropic", status, body)
        return events.frame(error, "error") if self._streams else error

    def _pass(self, event: Event) -> bytes:
        """Return what the client gets of an event."""
        told = event.document()
        kind, at = told.get("type"), told.get("index")
        self._assembly.take(told)
        if kind == "message_start":
            return b"" if self._round > 1 else event.raw
        if isinstance(at, int) and text(kind).startswith("content_block_"):
            return self._pass_block(event, told, at)
        if kind == "message_delta":
            self._usages.append(dict(self._assembly.usage))
            return self._pass_end(event, told)
        if kind == "message_stop" and not self._is_last:
            return b""
        return event.raw

    def _pass_block(self, event: Event, told: Json, at: int) -> bytes:
        if told.get("type") == "content_block_start":
            block = table(told.get("content_block"))
            if block.get("type") == "tool_use":
                if block.get("name") == self._tool:
                    self._withheld.add(at)
                    return b""
                self._has_client_calls = True
            self._places[at] = self._next
            self._next += 1
        if at in self._withheld:
            return self._mark(at) if told.get("type") == "content_block_stop" else b""
        place = self._places.get(at, at)
        return event.raw if place == at else events.write({**told, "index": place}, event.name)

    def _mark(self, at: int) -> bytes:
        """Show a marker in the place of a call; a call that was cut off leaves nothing."""
        block = self._assembly.blocks.get(at, {})
        if self._searches.has(at) or not block:
            return b""
        if shapes.arguments(block.get("input")) is None:
            self._broken.append(self._assembly.blocks.pop(at))
            return b""
        return self._marked(block, at)

    def _marked(self, block: Json, at: int) -> bytes:
        _, sign = self._searches.add(text(block.get("id")), block["input"], block, at)
        shown = text_events(self._next, sign)
        self._next += 1
        return b"".join(events.write(one, one["type"]) for one in shown)

    def _pass_end(self, event: Event, told: Json) -> bytes:
        return self._mark_broken() + self._pass_delta(event, told)

    def _mark_broken(self) -> bytes:
        """Show markers of calls whose arguments are none, once it is known that they were ended."""
        shown = b""
        while self._broken and self._assembly.stop == "tool_use":
            at = max(self._assembly.blocks, default=-1) + 1
            block = self._assembly.blocks[at] = {**self._broken.pop(0), "input": {}}
            shown += self._marked(block, at)
        return shown

    def _pass_delta(self, event: Event, told: Json) -> bytes:
        self._note_container(table(told.get("delta")))
        if self._round == 1 and not self._is_alone:
            return event.raw
        if not self._is_last:
            return b""
        ended = {**table(told.get("delta")), **self._told_container()}
        if self._is_alone:
            ended["stop_reason"] = "end_turn"
        usage = summing.summed(self._usages)
        return events.write({**told, "delta": ended, "usage": usage}, event.name)

    def _note_container(self, told: Json) -> None:
        container = table(told.get("container"))
        self._container = container if container.get("id") else self._container

    def _told_container(self) -> Json:
        return {"container": self._container} if self._container else {}

    def _pass_whole(self, body: bytes) -> bytes:
        """Return what the client gets of an answer that came as one document."""
        document = table(shapes.loaded(body.decode(errors="replace")))
        if document.get("type") != "message":
            return body
        blocks = shapes.found(document.get("content"))
        made = self._assembly
        made.blocks = dict(enumerate(blocks))
        made.stop = text(document.get("stop_reason"))
        self._usages.append(table(document.get("usage")))
        self._note_container(document)
        for at, block in enumerate(blocks):
            self._shown.append(self._shown_of(at, block))
        if self.goes_on:
            return b""
        if self._round == 1 and not self._searches:
            return body
        usage = summing.summed(self._usages)
        whole = {**document, **self._told_container(), "content": self._shown, "usage": usage}
        if self._is_alone:
            whole["stop_reason"] = "end_turn"
        return orjson.dumps(whole)

    def _shown_of(self, at: int, block: Json) -> Json:
        if block.get("type") != "tool_use":
            return block
        if block.get("name") != self._tool:
            self._has_client_calls = True
            return block
        given = shapes.arguments(block.get("input"))
        if given is None:
            given, block = {}, {**block, "input": {}}
            self._assembly.blocks[at] = block
        _, sign = self._searches.add(text(block.get("id")), given, block, at)
        return {"type": "text", "text": sign}


open_splice = Splice

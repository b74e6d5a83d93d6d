"""Joining the answers of Chat Completions in which the model calls recall into one."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from lore.gateway import events
from lore.gateway.apis import shapes, summing
from lore.gateway.apis.openai_chat.calls import Piece
from lore.gateway.apis.openai_chat.expanding import extra_of, result_of, spoken
from lore.gateway.apis.openai_chat.replies import DONE, Assembly, choice_of
from lore.gateway.apis.rounds import Rounds
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import MakeId, Request, Tool
from lore.gateway.events import Event
from lore.gateway.refusals import error_of

_CUT = ("length", "content_filter")
"""Why an answer may end in the middle of a call."""


class Splice(Rounds):
    """Makes one answer of several; see the protocol."""

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._usages: list[Json] = []
        self._head: Json = {}
        """What the first chunk says of the completion: its id above all."""
        self._said = ""
        """What the client has got of answers that are not streamed."""
        self._extra: dict[str, str] = {}

    def _begin(self) -> None:
        super()._begin()
        self._assembly = Assembly()
        self._message: Json = {}
        self._shown_numbers: dict[int, int] = {}
        """The numbers of the client's calls, by their places."""
        self._withheld: dict[int, int] = {}
        """The same of calls of recall."""

    def pause(self) -> bytes:
        """Take note that an answer has ended, and return what the client gets now."""
        told = super().pause()
        if self._streams:
            self._message = self._assembly.message
        return told

    @property
    def _is_alone(self) -> bool:
        """Tell whether the answer waits for nothing but results of ours."""
        return bool(self._searches) and not self._shown_numbers and self._assembly.stop not in _CUT

    def answer(self, results: Mapping[str, str]) -> dict[str, str]:
        """Take results by the ids of calls; return what is to be stored, by the ids of markers."""
        extra = extra_of(self._message)
        return self._searches.answer(results, is_mixed=bool(self._shown_numbers), extra=extra)

    def follow_up(self) -> bytes:
        """Return the body of the next request to the upstream."""
        document = shapes.read(self._body)
        answered = self._searches.answered
        said = text(self._message.get("content"))
        document["messages"] = [
            *shapes.tables(document["messages"]),
            spoken(said, answered, extra_of(self._message)),
            *map(result_of, answered),
        ]
        self._body = shapes.written(document)
        self._begin()
        return self._body

    def fail(self, status: int, body: bytes) -> bytes:
        """Return what ends the answer where the upstream did not go on, in its own words."""
        error = error_of("openai", status, body)
        return events.frame(error) + DONE if self._streams else error

    def _pass(self, event: Event) -> bytes:
        """Return what the client gets of an event."""
        if event.data.strip() == b"[DONE]":
            return event.raw if self._is_last else b""
        told = event.document()
        self._assembly.take(told)
        self._head = self._head or {
            name: told[name] for name in ("id", "created", "model") if name in told
        }
        choices = shapes.found(told.get("choices"))
        if told.get("usage"):
            self._usages.append(table(told["usage"]))
        if not choices:
            return self._pass_usage(event, told)
        if choices[0].get("index"):
            return event.raw
        delta = table(choices[0].get("delta"))
        shown = self._shown(delta)
        stop = text(choices[0].get("finish_reason"))
        marked = self._marked() if stop else b""
        if shown == delta and self._round == 1 and (not stop or not self._searches):
            return event.raw
        return marked + self._changed(told, choices[0], shown)

    def _pass_usage(self, event: Event, told: Json) -> bytes:
        if self._round == 1 and self._is_last:
            return event.raw
        if not self._is_last:
            return b""
        return events.write({**told, **self._head, "usage": summing.added(self._usages)})

    def _shown(self, delta: Json) -> Json:
        """Return what the client sees of a delta: no call of ours, all others in their order."""
        calls = [self._renumbered(one) for one in self._assembly.latest if not self._is_ours(one)]
        shown = {name: value for name, value in delta.items() if name != "tool_calls"}
        if self._round > 1:
            # SDKs put deltas together, and would join the roles.
            shown.pop("role", None)
        if "tool_calls" in delta and not shapes.found(delta["tool_calls"]):
            shown["tool_calls"] = delta["tool_calls"]
        elif calls:
            shown["tool_calls"] = calls
        return shown

    def _is_ours(self, piece: Piece) -> bool:
        """Tell whether a piece is of a call of recall; its first has the name."""
        if piece.place not in self._shown_numbers and piece.place not in self._withheld:
            is_ours = table(piece.told.get("function")).get("name") == self._tool
            numbers = self._withheld if is_ours else self._shown_numbers
            numbers[piece.place] = piece.number
        return piece.place in self._withheld

    def _renumbered(self, piece: Piece) -> Json:
        """Return a piece with the number that its call has without ours."""
        ours = set(self._withheld.values()) - set(self._shown_numbers.values())
        before = sum(number < piece.number for number in ours)
        return {**piece.told, "index": piece.number - before} if before else piece.told

    def _changed(self, told: Json, choice: Json, shown: Json) -> bytes:
        stop = choice.get("finish_reason")
        if stop and not self._is_last:
            stop = None
        if stop and self._is_alone:
            stop = "stop"
        usage = told.get("usage")
        if not any(shown.values()) and not stop and not (usage and self._is_last):
            return b""
        made = {
            **told,
            **self._head,
            "choices": [{**choice, "delta": shown, "finish_reason": stop}],
        }
        if usage:
            made["usage"] = summing.added(self._usages) if self._is_last else None
        return events.write(made)

    def _marked(self) -> bytes:
        """Show markers in the place of the calls, behind all that the answer said."""
        signs = [
            self._sign(call, at)
            for at, call in sorted(self._assembly.calls.items())
            if at in self._withheld and not self._searches.has(at)
        ]
        told = "".join(signs)
        if not told:
            return b""
        head = {**self._assembly.head, **self._head}
        head.pop("usage", None)
        return events.write({**head, "choices": [choice_of({"content": told})]})

    def _sign(self, call: Json, at: int) -> str:
        """Return the marker of a call; one that was cut off leaves nothing."""
        function = table(call.get("function"))
        given = shapes.arguments(shapes.loaded(text(function.get("arguments")) or "{}"))
        if given is None:
            if self._assembly.stop in _CUT:
                return ""
            given, call = {}, {**call, "function": {**function, "arguments": "{}"}}
        return self._searches.add(text(call.get("id")), given, call, at)[1]

    def _pass_whole(self, body: bytes) -> bytes:
        """Return what the client gets of an answer that came as one document."""
        document = table(shapes.loaded(body.decode(errors="replace")))
        choices = shapes.found(document.get("choices"))
        if not choices:
            return body
        self._usages.append(table(document.get("usage")))
        message = self._message = table(choices[0].get("message"))
        self._assembly.stop = text(choices[0].get("finish_reason"))
        theirs: list[Json] = []
        signs = ""
        for at, call in enumerate(shapes.found(message.get("tool_calls"))):
            if table(call.get("function")).get("name") == self._tool:
                signs += self._sign(call, at)
            else:
                self._shown_numbers[at] = at
                theirs.append(call)
        self._said += text(message.get("content")) + signs
        for name, value in extra_of(message).items():
            if isinstance(value, str):
                self._extra[name] = self._extra.get(name, "") + value
        if not self._is_last:
            return b""
        if self._round == 1 and not self._searches:
            return body
        shown: Json = {**message, **self._extra, "content": self._said or None}
        shown.pop("tool_calls", None)
        if theirs:
            shown["tool_calls"] = theirs
        stop = "stop" if self._is_alone else choices[0].get("finish_reason")
        choice = {**choices[0], "message": shown, "finish_reason": stop}
        usage = summing.added(self._usages)
        return orjson.dumps({**document, "choices": [choice], "usage": usage})


open_splice = Splice

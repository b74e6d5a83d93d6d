"""Responses of OpenAI's Chat Completions API: parse, answer in place of the model, rewrite."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from lore.gateway import sse
from lore.gateway.apis import adapter, json_values, stream_rewriter
from lore.gateway.apis.adapter import (
    JSON_HEADERS,
    STREAM_HEADERS,
    ErrorDetails,
    MakeId,
    Reply,
    Request,
    Tool,
)
from lore.gateway.apis.json_values import Json, as_count, as_object, as_text
from lore.gateway.apis.openai_chat.requests import (
    extra_fields,
    parse_entry,
    recall_message,
    tool_message,
)
from lore.gateway.apis.stream_rewriter import StreamRewriter
from lore.gateway.plugin_protocol import LocalResponse
from lore.gateway.sse import Event
from lore.records.gateway import TokenUse


class CallPiece(NamedTuple):
    """A delta of a call, the call's position, and the index that the server sent."""

    delta: Json
    place: int
    client_index: int


class CallAssembler:
    """Assembles the calls of a response from their deltas.

    Each call should have its own index, but some servers send 0 for all of them, or none. Then a
    different id, or a different name without an id, starts another call.
    """

    def __init__(self) -> None:
        self.calls: dict[int, Json] = {}
        self._latest: dict[int, int] = {}
        """The position of the last call with an index."""

    def add_delta(self, delta: Json) -> list[CallPiece]:
        """Add the calls of a delta, and return each with its position."""
        pieces: list[CallPiece] = []
        for at, call in enumerate(json_values.objects_in(delta.get("tool_calls"))):
            sent_index = call.get("index")
            number = sent_index if isinstance(sent_index, int) else at
            place = self._place_of(call, number)
            self._add(place, call)
            pieces.append(CallPiece(call, place, number))
        return pieces

    def _place_of(self, call: Json, number: int) -> int:
        place = self._latest.get(number)
        if place is None or _is_other_call(self.calls[place], call):
            place_of_id = None if place is None else self._place_of_id(as_text(call.get("id")))
            place = self._free_place(number) if place_of_id is None else place_of_id
        self._latest[number] = place
        return place

    def _place_of_id(self, call_id: str) -> int | None:
        """Return the position of a call whose deltas are interleaved with those of another."""
        for place, call in self.calls.items():
            if call_id and call.get("id") == call_id:
                return place
        return None

    def _free_place(self, number: int) -> int:
        return number if number not in self.calls else max(self.calls) + 1

    def _add(self, place: int, call: Json) -> None:
        assembled = self.calls.setdefault(place, {})
        function, more = as_object(assembled.get("function")), as_object(call.get("function"))
        written = as_text(function.get("arguments")) + as_text(more.get("arguments"))
        assembled |= {name: value for name, value in call.items() if name != "index" and value}
        assembled["function"] = {**function, **more, "arguments": written}


def _is_other_call(assembled: Json, call: Json) -> bool:
    """Return whether a delta with the index of a call belongs to another call."""
    if as_text(assembled.get("id")) and as_text(call.get("id")):
        return bool(assembled["id"] != call["id"])
    name = as_text(as_object(call.get("function")).get("name"))
    return bool(name) and name != as_text(as_object(assembled.get("function")).get("name"))


LOCAL_ID = "chatcmpl-lore"
"""Id of a completion that the gateway writes."""

_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")
"""Fields of a message with text of the model."""

DONE = b"data: [DONE]\n\n"


class ChatAssembler:
    """Assembles the first choice of a completion from its chunks."""

    def __init__(self) -> None:
        self.head: Json = {}
        self.usage: Json = {}
        self.stop = ""
        self.error: Json = {}
        self.chars = 0
        self.service = ""
        self.latest_calls: list[CallPiece] = []
        """The call deltas in the last chunk."""
        self._calls = CallAssembler()
        self._texts: dict[str, str] = {}

    def add_event(self, chunk: Json) -> None:
        """Add the next chunk."""
        self.error = as_object(chunk.get("error")) or self.error
        self.usage = as_object(chunk.get("usage")) or self.usage
        self.service = as_text(chunk.get("service_tier")) or self.service
        self.head = self.head or {name: chunk[name] for name in chunk if name != "choices"}
        self.latest_calls = []
        for choice in json_values.objects_in(chunk.get("choices")):
            self.chars += count_written_chars(as_object(choice.get("delta")))
            if choice.get("index", 0) == 0:
                self.stop = as_text(choice.get("finish_reason")) or self.stop
                self._add(as_object(choice.get("delta")))

    def _add(self, delta: Json) -> None:
        for name in _TEXT_FIELDS:
            if isinstance(delta.get(name), str):
                self._texts[name] = self._texts.get(name, "") + delta[name]
        self.latest_calls += self._calls.add_delta(delta)

    @property
    def calls(self) -> dict[int, Json]:
        """Return the calls by position."""
        return self._calls.calls

    @property
    def message(self) -> Json:
        """Return the message as a request would repeat it."""
        message: Json = {"role": "assistant", "content": self._texts.get("content") or None}
        message |= {name: text for name, text in self._texts.items() if name != "content" and text}
        if self.calls:
            message["tool_calls"] = [self.calls[at] for at in sorted(self.calls)]
        return message

    def reply(self) -> Reply:
        """Return the parsed response once it has ended or was cut off."""
        use = parse_usage(self.usage)
        if self.error:
            return Reply(usage=use, error=parse_error(self.error), chars=self.chars)
        entry = parse_entry([self.message], {}) if self.head else None
        return Reply(
            entry,
            use,
            self.stop,
            chars=self.chars,
            service_tier=self.service,
        )


def count_written_chars(message: Json) -> int:
    """Return the number of characters that a model wrote in a message or delta."""
    calls = json_values.objects_in(message.get("tool_calls"))
    return sum(len(as_text(message.get(name))) for name in _TEXT_FIELDS) + sum(
        len(as_text(as_object(call.get("function")).get("arguments"))) for call in calls
    )


def read_reply(body: bytes, *, streams: bool) -> Reply:
    """Parse a response, complete or cut off."""
    return adapter.read_stream(ChatAssembler(), body) if streams else parse_reply(body)


def parse_reply(body: bytes) -> Reply:
    """Parse a response that is one JSON document."""
    document = json_values.read_object(body)
    choices = json_values.objects_in(document.get("choices"))
    use = parse_usage(as_object(document.get("usage")))
    if not choices:
        return Reply(usage=use, error=parse_error(as_object(document.get("error"))))
    return Reply(
        parse_entry([{**as_object(choices[0].get("message")), "role": "assistant"}], {}),
        use,
        as_text(choices[0].get("finish_reason")),
        chars=sum(count_written_chars(as_object(choice.get("message"))) for choice in choices),
        service_tier=as_text(document.get("service_tier")),
    )


def parse_error(error: Json) -> ErrorDetails:
    """Parse an error object; its code is more specific than its type."""
    kind = as_text(error.get("code")) or as_text(error.get("type")) or adapter.UNREADABLE_ERROR
    return adapter.parse_error_message(kind, as_text(error.get("message")))


def parse_usage(usage: Json) -> TokenUse:
    """Return the token usage; some servers report reasoning tokens only in the total."""
    input_tokens, output_tokens = (
        as_count(usage.get("prompt_tokens")),
        as_count(usage.get("completion_tokens")),
    )
    if input_tokens:
        output_tokens = max(output_tokens, as_count(usage.get("total_tokens")) - input_tokens)
    return usage_from_counts(
        input_tokens, as_object(usage.get("prompt_tokens_details")), output_tokens
    )


def usage_from_counts(input_tokens: int, details: Json, output_tokens: int) -> TokenUse:
    """Return the token usage: input includes cache reads and writes, output includes reasoning."""
    read = min(as_count(details.get("cached_tokens")), input_tokens)
    written = min(as_count(details.get("cache_write_tokens")), input_tokens - read)
    return TokenUse(input_tokens - read - written, read, written, output_tokens=output_tokens)


def answer_with_text(request: Request, text: str) -> LocalResponse:
    """Answer a request with a text in place of the model."""
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    head = {"id": LOCAL_ID, "created": 0, "model": request.dialogue.model}
    if not request.streams:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return LocalResponse(200, JSON_HEADERS, orjson.dumps(whole))
    head["object"] = "chat.completion.chunk"
    chunks: list[Json] = [
        {**head, "choices": [chunk_choice({"role": "assistant", "content": text})]},
        {**head, "choices": [chunk_choice({}, "stop")]},
    ]
    if as_object(request.document.get("stream_options")).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": usage})
    return LocalResponse(200, STREAM_HEADERS, b"".join(map(sse.write, chunks)) + DONE)


def chunk_choice(delta: Json, stop: str | None = None) -> Json:
    """Return the choice of a chunk."""
    return {"index": 0, "delta": delta, "finish_reason": stop}


_CUT_OFF_REASONS = ("length", "content_filter")
"""Reasons why a response may end within a call."""


class ChatRewriter(StreamRewriter):
    """Stream rewriter for the Chat Completions API."""

    provider = "openai"

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._head: Json = {}
        """Fields of the first chunk that all later ones repeat, above all the id."""
        self._client_text = ""
        """The text for the client of responses that are not streamed."""
        self._extra: dict[str, str] = {}

    def _start_round(self) -> None:
        super()._start_round()
        self._assembler = ChatAssembler()
        self._message: Json = {}
        self._client_calls: dict[int, int] = {}
        """The index of each call for the client, by position."""
        self._withheld: dict[int, int] = {}
        """The same for recall calls."""

    def end_response(self) -> bytes:
        """End the current response, and return the remaining bytes for the client."""
        output = super().end_response()
        if self._streams:
            self._message = self._assembler.message
        return output

    @property
    def _waits_for_results(self) -> bool:
        return self._assembler.stop not in _CUT_OFF_REASONS

    @property
    def _extra_fields(self) -> Json:
        return extra_fields(self._message)

    def _add_round(self, document: Json) -> None:
        answered, text = self._recall_calls.markers, as_text(self._message.get("content"))
        document["messages"] = [
            *json_values.require_objects(document["messages"]),
            recall_message(text, answered, self._extra_fields),
            *map(tool_message, answered),
        ]

    def _error_event(self, error: bytes) -> bytes:
        return sse.frame(error) + DONE

    def _rewrite_event(self, event: Event) -> bytes:
        if event.data.strip() == b"[DONE]":
            return event.raw if self._is_last_round else b""
        chunk = event.document()
        self._assembler.add_event(chunk)
        self._head = self._head or {
            name: chunk[name] for name in ("id", "created", "model") if name in chunk
        }
        choices = json_values.objects_in(chunk.get("choices"))
        if chunk.get("usage"):
            self._usages.append(as_object(chunk["usage"]))
        if not choices:
            return self._rewrite_usage(event, chunk)
        if choices[0].get("index"):
            return event.raw
        delta = as_object(choices[0].get("delta"))
        shown = self._without_recall_calls(delta)
        stop = as_text(choices[0].get("finish_reason"))
        marked = self._marker_chunk() if stop else b""
        if shown == delta and self._round == 1 and (not stop or not self._recall_calls):
            return event.raw
        return marked + self._write_chunk(chunk, choices[0], shown)

    def _rewrite_usage(self, event: Event, chunk: Json) -> bytes:
        if self._round == 1 and self._is_last_round:
            return event.raw
        if not self._is_last_round:
            return b""
        return sse.write({**chunk, **self._head, "usage": stream_rewriter.sum_usages(self._usages)})

    def _without_recall_calls(self, delta: Json) -> Json:
        """Return a delta without recall calls."""
        calls = [
            self._reindex(one)
            for one in self._assembler.latest_calls
            if not self._is_recall_call(one)
        ]
        shown = {name: value for name, value in delta.items() if name != "tool_calls"}
        if self._round > 1:
            # SDKs concatenate the fields of deltas, and would join the roles.
            shown.pop("role", None)
        if "tool_calls" in delta and not json_values.objects_in(delta["tool_calls"]):
            shown["tool_calls"] = delta["tool_calls"]
        elif calls:
            shown["tool_calls"] = calls
        return shown

    def _is_recall_call(self, piece: CallPiece) -> bool:
        """Return whether a delta belongs to a recall call; a call's first delta has the name."""
        if piece.place not in self._client_calls and piece.place not in self._withheld:
            is_ours = as_object(piece.delta.get("function")).get("name") == self._tool
            numbers = self._withheld if is_ours else self._client_calls
            numbers[piece.place] = piece.client_index
            self._has_client_calls = bool(self._client_calls)
        return piece.place in self._withheld

    def _reindex(self, piece: CallPiece) -> Json:
        """Return a delta with the index that its call has without recall calls."""
        ours = set(self._withheld.values()) - set(self._client_calls.values())
        before = sum(number < piece.client_index for number in ours)
        return {**piece.delta, "index": piece.client_index - before} if before else piece.delta

    def _write_chunk(self, chunk: Json, choice: Json, shown: Json) -> bytes:
        stop = choice.get("finish_reason")
        if stop and not self._is_last_round:
            stop = None
        if stop and self._is_recall_only:
            stop = "stop"
        usage = chunk.get("usage")
        if not any(shown.values()) and not stop and not (usage and self._is_last_round):
            return b""
        changed = {
            **chunk,
            **self._head,
            "choices": [{**choice, "delta": shown, "finish_reason": stop}],
        }
        if usage:
            changed["usage"] = (
                stream_rewriter.sum_usages(self._usages) if self._is_last_round else None
            )
        return sse.write(changed)

    def _marker_chunk(self) -> bytes:
        """Return a chunk with the markers of all recall calls, after the text of the response."""
        signs = [
            self._marker_text(call, at)
            for at, call in sorted(self._assembler.calls.items())
            if at in self._withheld and not self._recall_calls.has_call_at(at)
        ]
        text = "".join(signs)
        if not text:
            return b""
        head = {**self._assembler.head, **self._head}
        head.pop("usage", None)
        return sse.write({**head, "choices": [chunk_choice({"content": text})]})

    def _marker_text(self, call: Json, at: int) -> str:
        """Return the marker text of a call; a call that was cut off leaves nothing."""
        function = as_object(call.get("function"))
        arguments = json_values.call_arguments(
            json_values.parse_or_none(as_text(function.get("arguments")) or "{}")
        )
        if arguments is None:
            if self._assembler.stop in _CUT_OFF_REASONS:
                return ""
            arguments, call = {}, {**call, "function": {**function, "arguments": "{}"}}
        return self._recall_calls.add(as_text(call.get("id")), arguments, call, at)[1]

    def _join_document(self, document: Json) -> Json | None:
        choices = json_values.objects_in(document.get("choices"))
        if not choices:
            return None
        self._usages.append(as_object(document.get("usage")))
        message = self._message = as_object(choices[0].get("message"))
        self._assembler.stop = as_text(choices[0].get("finish_reason"))
        theirs: list[Json] = []
        signs = ""
        for at, call in enumerate(json_values.objects_in(message.get("tool_calls"))):
            if as_object(call.get("function")).get("name") == self._tool:
                signs += self._marker_text(call, at)
            else:
                theirs.append(call)
        self._has_client_calls = bool(theirs)
        self._client_text += as_text(message.get("content")) + signs
        for name, value in self._extra_fields.items():
            if isinstance(value, str):
                self._extra[name] = self._extra.get(name, "") + value
        shown: Json = {**message, **self._extra, "content": self._client_text or None}
        shown.pop("tool_calls", None)
        if theirs:
            shown["tool_calls"] = theirs
        stop = "stop" if self._is_recall_only else choices[0].get("finish_reason")
        choice = {**choices[0], "message": shown, "finish_reason": stop}
        usage = stream_rewriter.sum_usages(self._usages)
        return {**document, "choices": [choice], "usage": usage}


open_rewriter = ChatRewriter

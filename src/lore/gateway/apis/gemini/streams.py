"""Responses of Gemini's generateContent API: parse, answer in place of the model, rewrite."""

from __future__ import annotations

import orjson

from lore.gateway import sse
from lore.gateway.apis import adapter, json_values, stream_rewriter
from lore.gateway.apis.adapter import (
    JSON_HEADERS,
    STREAM_HEADERS,
    MakeId,
    Reply,
    Request,
    Tool,
)
from lore.gateway.apis.gemini.requests import (
    CallNumbering,
    add_part,
    function_response,
    get_field,
    parse_entry,
)
from lore.gateway.apis.json_values import Json, as_count, as_object, as_text
from lore.gateway.apis.stream_rewriter import StreamRewriter
from lore.gateway.plugin_protocol import LocalResponse
from lore.gateway.sse import Event
from lore.records.gateway import TokenUse


class GeminiAssembler:
    """Assembles the first candidate from the chunks of a stream."""

    def __init__(self) -> None:
        self.parts: list[Json] = []
        self.usage: Json = {}
        self.stop = ""
        self.chars = 0
        self.error: Json = {}

    def add_event(self, chunk: Json) -> None:
        """Add the next chunk; adjacent texts of the same kind become one part."""
        self.error = as_object(chunk.get("error")) or self.error
        self.usage |= as_object(chunk.get("usageMetadata"))
        candidates = json_values.objects_in(chunk.get("candidates"))
        self.chars += sum(map(_count_written_chars, candidates))
        for candidate in candidates[:1]:
            self.stop = as_text(candidate.get("finishReason")) or self.stop
            for part in json_values.objects_in(as_object(candidate.get("content")).get("parts")):
                add_part(self.parts, part)

    def reply(self) -> Reply:
        """Return the parsed response once it has ended or was cut off."""
        use = parse_usage(self.usage)
        if self.error or not (self.parts or self.stop or self.usage):
            kind = as_text(self.error.get("status")) or adapter.UNREADABLE_ERROR
            details = adapter.parse_error_message(kind, as_text(self.error.get("message")))
            return Reply(usage=use, error=details, chars=self.chars)
        content = {"role": "model", "parts": self.parts}
        entry = parse_entry([content], CallNumbering()) if self.parts else None
        return Reply(entry, use, self.stop, chars=self.chars)


def _count_written_chars(candidate: Json) -> int:
    parts = json_values.objects_in(as_object(candidate.get("content")).get("parts"))
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return sum(len(as_text(part.get("text"))) for part in parts) + sum(
        len(json_values.to_json_text(call)) for call in calls
    )


def read_reply(body: bytes, *, streams: bool) -> Reply:
    """Parse a response, complete or cut off."""
    return adapter.read_stream(GeminiAssembler(), body) if streams else parse_reply(body)


def parse_reply(body: bytes) -> Reply:
    """Parse a response that is one JSON document, or a list of chunks."""
    parsed = json_values.parse_or_none(body.decode(errors="replace"))
    assembly = GeminiAssembler()
    for one in json_values.objects_in(parsed if isinstance(parsed, list) else [parsed]):
        assembly.add_event(one)
    return assembly.reply()


def parse_usage(usage: Json) -> TokenUse:
    """Return the token usage; thinking tokens are billed as output and reported separately."""
    input_tokens = as_count(usage.get("promptTokenCount")) + as_count(
        usage.get("toolUsePromptTokenCount")
    )
    cached = as_count(usage.get("cachedContentTokenCount"))
    output_tokens = as_count(usage.get("candidatesTokenCount")) + as_count(
        usage.get("thoughtsTokenCount")
    )
    return TokenUse(
        fresh_tokens=max(0, input_tokens - cached),
        cache_read_tokens=cached,
        output_tokens=output_tokens,
    )


def answer_with_text(request: Request, text: str) -> LocalResponse:
    """Answer a request with a text in place of the model."""
    content = {"role": "model", "parts": [{"text": text}]}
    usage = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
    document = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": request.dialogue.model,
    }
    if request.streams:
        return LocalResponse(200, STREAM_HEADERS, sse.write(document))
    return LocalResponse(200, JSON_HEADERS, orjson.dumps(document))


class GeminiRewriter(StreamRewriter):
    """Stream rewriter for the generateContent API."""

    provider = "gemini"

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._client_parts: list[Json] = []
        """The parts for the client of responses that are not streamed."""
        self._id = ""

    def _start_round(self) -> None:
        super()._start_round()
        self._assembler = GeminiAssembler()

    @property
    def _waits_for_results(self) -> bool:
        return self._assembler.stop == "STOP"

    @property
    def _tail(self) -> int:
        return len(self._assembler.parts) - 1 - self._recall_calls.last_place

    def _add_round(self, document: Json) -> None:
        answered = [function_response(one) for one in self._recall_calls.markers]
        document["contents"] = [
            *json_values.require_objects(document["contents"]),
            {"role": "model", "parts": self._assembler.parts},
            {"role": "user", "parts": answered},
        ]
        self._usages.append(self._assembler.usage)

    def _rewrite_event(self, event: Event) -> bytes:
        chunk = event.document()
        shown = self._rewrite_chunk_document(chunk)
        if shown == chunk:
            return event.raw
        candidates = json_values.objects_in(shown.get("candidates"))
        content = as_object(candidates[0].get("content")) if candidates else {}
        if not content.get("parts") and not self._is_last_round:
            return b""
        return sse.write(shown)

    def _rewrite_chunk_document(self, chunk: Json) -> Json:
        """Add a chunk, and return it as the client sees it."""
        candidates = json_values.objects_in(chunk.get("candidates"))
        parts = (
            json_values.objects_in(as_object(candidates[0].get("content")).get("parts"))
            if candidates
            else []
        )
        shown_parts: list[Json] = []
        stop = as_text(candidates[0].get("finishReason")) if candidates else ""
        self._assembler.add_event({**chunk, "candidates": []})
        for part in parts:
            piece = {"candidates": [{"content": {"parts": [part]}}]}
            self._assembler.add_event(piece)
            shown_parts.append(self._rewrite_part(part))
        self._assembler.stop = stop or self._assembler.stop
        self._id = self._id or as_text(chunk.get("responseId"))
        shown = dict(chunk)
        if shown_parts != parts or (stop and self._is_recall_only):
            candidate = dict(candidates[0])
            candidate["content"] = {**as_object(candidate.get("content")), "parts": shown_parts}
            if stop and not self._is_last_round:
                candidate.pop("finishReason")
            shown["candidates"] = [candidate]
        if self._round > 1:
            if "usageMetadata" in chunk:
                usages = [*self._usages, as_object(chunk["usageMetadata"])]
                shown["usageMetadata"] = stream_rewriter.sum_usages(usages)
            if "responseId" in chunk:
                shown["responseId"] = self._id
        return shown

    def _rewrite_part(self, part: Json) -> Json:
        call = get_field(part, "functionCall")
        if not call:
            return part
        if call.get("name") != self._tool:
            self._has_client_calls = True
            return part
        place = len(self._assembler.parts) - 1
        # A call without an id is identified by its position.
        call_id = as_text(call.get("id")) or f"{self._round}.{place}"
        arguments = json_values.call_arguments(call.get("args") or {})
        if arguments is None:
            arguments, part = {}, {**part, "functionCall": {**call, "args": {}}}
            self._assembler.parts[place] = part
        return {"text": self._recall_calls.add(call_id, arguments, part, place)[1]}

    def _join_document(self, document: Json) -> Json | None:
        if not document.get("candidates"):
            return None
        shown = self._rewrite_chunk_document(document)
        candidate = json_values.objects_in(shown["candidates"])[0]
        content = as_object(candidate.get("content"))
        self._client_parts += json_values.objects_in(content.get("parts"))
        whole = {**candidate, "content": {**content, "parts": self._client_parts}}
        return {**shown, "candidates": [whole]}


open_rewriter = GeminiRewriter

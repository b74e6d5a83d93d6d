"""Reading an answer of Gemini's generateContent, and giving one in the model's place."""

from __future__ import annotations

import orjson

from lore.gateway import events
from lore.gateway.apis import faults, listening, shapes
from lore.gateway.apis.gemini.reading import Numbering, add_part, entry_of
from lore.gateway.apis.openai_chat.replies import JSON_HEADERS, STREAM_HEADERS
from lore.gateway.apis.shapes import Json, count, table, text
from lore.gateway.apis.wire import Reply, ReplyReader, Request
from lore.gateway.exchanges import Answer
from lore.records.dialogues import TokenUse


class Assembly:
    """Puts the first candidate together from the pieces of a stream."""

    def __init__(self) -> None:
        self.parts: list[Json] = []
        self.usage: Json = {}
        self.stop = ""
        self.chars = 0
        self.error: Json = {}

    def take(self, told: Json) -> None:
        """Take the next piece; texts of one kind become one part."""
        self.error = table(told.get("error")) or self.error
        self.usage |= table(told.get("usageMetadata"))
        candidates = shapes.found(told.get("candidates"))
        self.chars += sum(map(_written_chars, candidates))
        for candidate in candidates[:1]:
            self.stop = text(candidate.get("finishReason")) or self.stop
            for part in shapes.found(table(candidate.get("content")).get("parts")):
                add_part(self.parts, part)

    def reply(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""
        use = use_of(self.usage)
        if self.error or not (self.parts or self.stop or self.usage):
            kind = text(self.error.get("status")) or faults.UNREADABLE
            said = faults.fault(kind, text(self.error.get("message")))
            return Reply(use=use, fault=said, chars=self.chars)
        content = {"role": "model", "parts": self.parts}
        entry = entry_of([content], Numbering()) if self.parts else None
        return Reply(entry, use, self.stop, chars=self.chars)


def _written_chars(candidate: Json) -> int:
    parts = shapes.found(table(candidate.get("content")).get("parts"))
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return sum(len(text(part.get("text"))) for part in parts) + sum(
        len(shapes.dumped(call)) for call in calls
    )


def open_reader(*, streams: bool) -> ReplyReader:
    """Return a reader of one answer."""
    return listening.reader(Assembly(), read_whole, streams=streams)


def read_whole(body: bytes) -> Reply:
    """Read an answer that is one document, or a stream without events: a list of its pieces."""
    told = shapes.loaded(body.decode(errors="replace"))
    assembly = Assembly()
    for one in shapes.found(told if isinstance(told, list) else [told]):
        assembly.take(one)
    return assembly.reply()


def use_of(usage: Json) -> TokenUse:
    """Return what an answer took; thoughts are paid as output, and told beside it."""
    given = count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount"))
    cached = count(usage.get("cachedContentTokenCount"))
    said = count(usage.get("candidatesTokenCount")) + count(usage.get("thoughtsTokenCount"))
    return TokenUse(
        fresh_tokens=max(0, given - cached), cache_read_tokens=cached, output_tokens=said
    )


def answer(request: Request, said: str) -> Answer:
    """Say a text in the place of the model."""
    content = {"role": "model", "parts": [{"text": said}]}
    usage = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
    told = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": request.dialogue.model,
    }
    if request.streams:
        return Answer(200, STREAM_HEADERS, events.write(told))
    return Answer(200, JSON_HEADERS, orjson.dumps(told))

"""Reading an answer of Anthropic's Messages, and giving one in the model's place."""

from __future__ import annotations

from collections import defaultdict

import orjson

from lore.gateway import events
from lore.gateway.apis import faults, listening, shapes
from lore.gateway.apis.anthropic.reading import entry_of, is_said
from lore.gateway.apis.shapes import Json, count, table, text
from lore.gateway.apis.wire import Reply, ReplyReader, Request
from lore.gateway.exchanges import Answer
from lore.records.dialogues import TokenUse

JSON_HEADERS = (("content-type", "application/json"),)
STREAM_HEADERS = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
)
LOCAL_ID = "msg_lore"
"""The id of a message that no provider has written."""

_WRITTEN = "partial_json"
_SIGNED = "signature"
_GROWING = ("text", "thinking", _SIGNED, _WRITTEN)
"""Fields of a delta that go on where the last one ended; of a call, its input as it is written.
All but the signature the model has written, and is paid for."""


class Assembly:
    """Puts a message together from the events of its stream."""

    def __init__(self) -> None:
        self.blocks: dict[int, Json] = {}
        self.usage: Json = {}
        self.stop = ""
        self.chars = 0
        self.error: Json = {}
        self._pieces = defaultdict[tuple[int, str], list[str]](list)
        """What deltas add to the texts of blocks, by the block and the field."""

    def take(self, event: Json) -> None:
        """Take the next event."""
        kind, at = event.get("type"), event.get("index")
        if kind == "content_block_delta" and isinstance(at, int):
            self._add(at, table(event.get("delta")))
        elif kind == "message_start":
            self.usage |= table(table(event.get("message")).get("usage"))
        elif kind == "content_block_start" and isinstance(at, int):
            self.blocks[at] = dict(table(event.get("content_block")))
        elif kind == "content_block_stop" and isinstance(at, int):
            for name in _GROWING:
                self._join(at, name)
        elif kind == "message_delta":
            self.stop = text(table(event.get("delta")).get("stop_reason"))
            told = table(event.get("usage"))
            self.usage |= {name: value for name, value in told.items() if value is not None}
        elif kind == "error":
            self.error = table(event.get("error"))

    def _add(self, at: int, delta: Json) -> None:
        for name, value in delta.items():
            if name in _GROWING and isinstance(value, str):
                self._pieces[at, name].append(value)
                self.chars += len(value) if name != _SIGNED else 0
        if delta.get("type") == "citations_delta":
            block = self.blocks.setdefault(at, {})
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif delta.get("type") == "compaction_delta":
            self._condense(self.blocks.setdefault(at, {}), delta)

    def _condense(self, block: Json, delta: Json) -> None:
        """Take what the API has made of the past: it comes in one piece, whatever is part of it."""
        said = text(block.get("content")) + text(delta.get("content"))
        block |= {name: value for name, value in delta.items() if name != "type"}
        block["content"] = said or None
        self.chars += len(text(delta.get("content")))

    def _join(self, at: int, name: str) -> None:
        pieces = self._pieces.pop((at, name), None)
        if pieces is None:
            return
        block, joined = self.blocks.setdefault(at, {}), "".join(pieces)
        if name == _WRITTEN:
            block["input"] = shapes.loaded(joined or "{}")
        else:
            block[name] = text(block.get(name)) + joined

    @property
    def content(self) -> list[Json]:
        """Return the blocks as a request would give them back: none is empty.

        Of one that was cut off there is what it says, and of a call no input.
        """
        for at, name in [one for one in self._pieces if one[1] != _WRITTEN]:
            self._join(at, name)
        ordered = [self.blocks[at] for at in sorted(self.blocks)]
        return [one for one in ordered if "type" in one and is_said(one)]

    def reply(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""
        use, error = use_of(self.usage), self.error
        if error:
            fault = faults.fault(text(error.get("type")), text(error.get("message")))
            return Reply(use=use, fault=fault, chars=self.chars)
        said = {"role": "assistant", "content": self.content}
        entry = entry_of(said, {}) if self.blocks else None
        return Reply(
            entry,
            use,
            self.stop,
            chars=self.chars,
            service=text(self.usage.get("speed")),
        )


def open_reader(*, streams: bool) -> ReplyReader:
    """Return a reader of one answer."""
    return listening.reader(Assembly(), read_whole, streams=streams)


def read_whole(body: bytes) -> Reply:
    """Read an answer that is one document."""
    document = table(shapes.loaded(body.decode(errors="replace")))
    error = table(document.get("error"))
    if error or document.get("type") != "message":
        kind = text(error.get("type")) or faults.UNREADABLE
        return Reply(fault=faults.fault(kind, text(error.get("message"))))
    entry = entry_of({"role": "assistant", "content": document.get("content")}, {})
    return Reply(
        entry,
        use_of(table(document.get("usage"))),
        text(document.get("stop_reason")),
        chars=entry.chars,
        service=text(table(document.get("usage")).get("speed")),
    )


def use_of(usage: Json) -> TokenUse:
    """Return what an answer took; writes whose lifetime is not told live for five minutes."""
    written = count(usage.get("cache_creation_input_tokens"))
    long_lived = count(table(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"))
    return TokenUse(
        fresh_tokens=count(usage.get("input_tokens")),
        cache_read_tokens=count(usage.get("cache_read_input_tokens")),
        cache_write_tokens=max(0, written - long_lived),
        cache_write_1h_tokens=long_lived,
        output_tokens=count(usage.get("output_tokens")),
    )


def answer(request: Request, said: str) -> Answer:
    """Say a text in the place of the model."""
    usage = {"input_tokens": 0, "output_tokens": 0}
    message: Json = {
        "id": LOCAL_ID,
        "type": "message",
        "role": "assistant",
        "model": request.dialogue.model,
        "content": [{"type": "text", "text": said}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    if not request.streams:
        return Answer(200, JSON_HEADERS, orjson.dumps(message))
    begun = {**message, "content": [], "stop_reason": None}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    told: list[Json] = [
        {"type": "message_start", "message": begun},
        *text_events(0, said),
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]
    return Answer(200, STREAM_HEADERS, b"".join(events.write(one, one["type"]) for one in told))


def text_events(at: int, said: str) -> list[Json]:
    """Return the events of a block of text."""
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": said}
    return [
        {"type": "content_block_start", "index": at, "content_block": block},
        {"type": "content_block_delta", "index": at, "delta": delta},
        {"type": "content_block_stop", "index": at},
    ]

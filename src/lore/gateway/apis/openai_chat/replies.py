"""Reading an answer of OpenAI's Chat Completions, and giving one in the model's place."""

from __future__ import annotations

import orjson

from lore.gateway import events
from lore.gateway.apis import faults, listening, shapes
from lore.gateway.apis.openai_chat.calls import Calls, Piece
from lore.gateway.apis.openai_chat.reading import entry_of
from lore.gateway.apis.shapes import Json, count, table, text
from lore.gateway.apis.wire import Fault, Reply, ReplyReader, Request
from lore.gateway.exchanges import Answer
from lore.records.dialogues import TokenUse

JSON_HEADERS = (("content-type", "application/json"),)
STREAM_HEADERS = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
)
LOCAL_ID = "chatcmpl-lore"
"""The id of a completion that no provider has written."""

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
"""Where the words of a message stand."""

DONE = b"data: [DONE]\n\n"


class Assembly:
    """Puts the first choice of a completion together from its chunks."""

    def __init__(self) -> None:
        self.head: Json = {}
        self.usage: Json = {}
        self.stop = ""
        self.error: Json = {}
        self.chars = 0
        self.service = ""
        self.latest: list[Piece] = []
        """The pieces of calls in the last chunk."""
        self._calls = Calls()
        self._texts: dict[str, str] = {}

    def take(self, chunk: Json) -> None:
        """Take the next chunk."""
        self.error = table(chunk.get("error")) or self.error
        self.usage = table(chunk.get("usage")) or self.usage
        self.service = text(chunk.get("service_tier")) or self.service
        self.head = self.head or {name: chunk[name] for name in chunk if name != "choices"}
        self.latest = []
        for choice in shapes.found(chunk.get("choices")):
            self.chars += written_chars(table(choice.get("delta")))
            if choice.get("index", 0) == 0:
                self.stop = text(choice.get("finish_reason")) or self.stop
                self._add(table(choice.get("delta")))

    def _add(self, delta: Json) -> None:
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                self._texts[name] = self._texts.get(name, "") + delta[name]
        self.latest += self._calls.take(delta)

    @property
    def calls(self) -> dict[int, Json]:
        """Return the calls by their places."""
        return self._calls.by_place

    @property
    def message(self) -> Json:
        """Return the message as a request would give it back."""
        message: Json = {"role": "assistant", "content": self._texts.get("content") or None}
        message |= {name: said for name, said in self._texts.items() if name != "content" and said}
        if self.calls:
            message["tool_calls"] = [self.calls[at] for at in sorted(self.calls)]
        return message

    def reply(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""
        use = use_of(self.usage)
        if self.error:
            return Reply(use=use, fault=fault_of(self.error), chars=self.chars)
        entry = entry_of([self.message], {}) if self.head else None
        return Reply(
            entry,
            use,
            self.stop,
            chars=self.chars,
            service=self.service,
        )


def written_chars(message: Json) -> int:
    """Return how much a model has written in a message, or in a piece of one."""
    calls = shapes.found(message.get("tool_calls"))
    return sum(len(text(message.get(name))) for name in _TEXTS) + sum(
        len(text(table(call.get("function")).get("arguments"))) for call in calls
    )


def open_reader(*, streams: bool) -> ReplyReader:
    """Return a reader of one answer."""
    return listening.reader(Assembly(), read_whole, streams=streams)


def read_whole(body: bytes) -> Reply:
    """Read an answer that is one document."""
    document = table(shapes.loaded(body.decode(errors="replace")))
    choices = shapes.found(document.get("choices"))
    use = use_of(table(document.get("usage")))
    if not choices:
        return Reply(use=use, fault=fault_of(table(document.get("error"))))
    return Reply(
        entry_of([{**table(choices[0].get("message")), "role": "assistant"}], {}),
        use,
        text(choices[0].get("finish_reason")),
        chars=sum(written_chars(table(choice.get("message"))) for choice in choices),
        service=text(document.get("service_tier")),
    )


def fault_of(error: Json) -> Fault:
    """Return an error as a fault; the code tells more than the type."""
    kind = text(error.get("code")) or text(error.get("type")) or faults.UNREADABLE
    return faults.fault(kind, text(error.get("message")))


def use_of(usage: Json) -> TokenUse:
    """Return what an answer took; some tell thoughts in the sum alone, and not as completion."""
    given, said = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    if given:
        said = max(said, count(usage.get("total_tokens")) - given)
    return use_with(given, table(usage.get("prompt_tokens_details")), said)


def use_with(given: int, details: Json, said: int) -> TokenUse:
    """Return what a prompt took: what was read from the cache, or written to it, is part of it.

    Thoughts are part of what was said.
    """
    read = min(count(details.get("cached_tokens")), given)
    written = min(count(details.get("cache_write_tokens")), given - read)
    return TokenUse(given - read - written, read, written, output_tokens=said)


def answer(request: Request, said: str) -> Answer:
    """Say a text in the place of the model."""
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    head = {"id": LOCAL_ID, "created": 0, "model": request.dialogue.model}
    if not request.streams:
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return Answer(200, JSON_HEADERS, orjson.dumps(whole))
    head["object"] = "chat.completion.chunk"
    told: list[Json] = [
        {**head, "choices": [choice_of({"role": "assistant", "content": said})]},
        {**head, "choices": [choice_of({}, "stop")]},
    ]
    if table(request.document.get("stream_options")).get("include_usage"):
        told.append({**head, "choices": [], "usage": usage})
    return Answer(200, STREAM_HEADERS, b"".join(map(events.write, told)) + DONE)


def choice_of(delta: Json, stop: str | None = None) -> Json:
    """Return the choice of a chunk."""
    return {"index": 0, "delta": delta, "finish_reason": stop}

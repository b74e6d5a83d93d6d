"""What a test scripts: the parts of a reply, errors, and how a reply is sent."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.upstream.prompt_cache import PromptUsage

ApiName = Literal["anthropic", "chat", "responses", "gemini", "other"]
Role = Literal["user", "assistant"]
Json = dict[str, Any]

DELTA_CHARS = 16
"""Characters in one event of a stream; few, so that every client has to join deltas."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the assistant."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Thinking; the upstream signs it, and a client must send it back unchanged or not at all."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the client's tools; without an id it gets one.

    Only Responses has tools in a `namespace`, and `freeform` tools whose input is a text.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    freeform: str = ""
    namespace: str = ""


Part = Text | Thought | Call


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong the first `times` that a scene's reply is due.

    With a status alone it is an error response, with a number of events alone the stream is cut
    after them, and with both the error comes inside the stream.
    """

    status: int = 0
    cut_after_events: int = 0
    times: int = 1
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class ModelReply:
    """A reply of the model in the format of the API that the request uses.

    It can wait: `delay_s` before the status, `pause_s` between events, or for `hold` before event
    `hold_at` (-1: before the status). `chunk_bytes=1` sends the stream byte by byte.
    `input_tokens` is reported instead of the counted tokens.
    """

    def __init__(
        self,
        *parts: Part | str,
        stop: str = "",
        input_tokens: int | None = None,
        output_tokens: int = 0,
        delay_s: float = 0.0,
        pause_s: float = 0.0,
        hold: threading.Event | None = None,
        hold_at: int = -1,
        chunk_bytes: int = 0,
        headers: Mapping[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        self.parts = tuple(Text(part) if isinstance(part, str) else part for part in parts)
        self.stop = stop
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.delay_s = delay_s
        self.pause_s = pause_s
        self.hold = hold
        self.hold_at = hold_at
        self.chunk_bytes = chunk_bytes
        self.headers = headers or {}
        self.fault = fault

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thought))

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))


@dataclass(frozen=True)
class ModelError:
    """An error in the format of the API; without a kind it has the usual one of its status."""

    status: int
    kind: str = ""
    message: str = "It did not work."
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RawResponse:
    """Any bytes."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


ScriptedResponse = ModelReply | ModelError | RawResponse


@dataclass
class ReceivedRequest:
    """A request as it came: its bytes, what they say, and how it was answered."""

    number: int
    method: str
    target: str
    """Path and query as they were sent."""
    headers: list[tuple[str, str]]
    """Names in lower case, in their order."""
    body: bytes
    api: ApiName
    json: Any = None
    connection: int = 0
    problem: str = ""
    """The rule that the request breaks."""
    usage: PromptUsage = field(default_factory=lambda: PromptUsage(0))
    status: int = 0
    response: Response | None = None
    outcome: Literal["", "complete", "cut", "disconnected"] = ""
    cue: str = ""
    """What a script recognised the request by."""
    step: int = 0
    """The position of the reply in the script of its cue."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str:
        """Return the last header of a name, empty if there is none."""
        return dict(self.headers).get(name, "")

    @property
    def counts_tokens(self) -> bool:
        return self.path.endswith("/count_tokens")

    @property
    def streams(self) -> bool:
        return ":stream" in self.path if self.api == "gemini" else bool(self.json.get("stream"))

    @property
    def model(self) -> str:
        if self.api == "gemini":
            return self.path.rpartition("/")[2].partition(":")[0]
        return str(self.json["model"])


Script = Iterable[ScriptedResponse] | Callable[[ReceivedRequest], ScriptedResponse]


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered, as the client sent it to the model."""

    call_id: str
    text: str
    failed: bool | None = None
    """Only Anthropic Messages has it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a request: its texts, and the results of tools in it."""

    role: Role
    texts: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a request, apart from any API."""

    system: str
    turns: tuple[Turn, ...]


class Rejected(Exception):
    """A request breaks a rule of its API; the provider answers 400."""


class Unscripted(Exception):
    """The script has no reply to a request."""


def require(condition: object, message: str) -> None:
    """Reject the request unless the condition holds."""
    if not condition:
        raise Rejected(message)


@dataclass
class History:
    """Thoughts that the upstream has sent, to notice when they come back changed."""

    thoughts_of_call: dict[str, list[str]] = field(default_factory=dict)
    """Signatures of the thoughts before a call, by the id of the call (Anthropic)."""
    reasoning_of_item: dict[str, str] = field(default_factory=dict)
    """The reasoning item before an item, by their ids (Responses)."""
    call_signatures: dict[str, str] = field(default_factory=dict)
    """Signatures of calls, by name and arguments (Gemini)."""


@dataclass(frozen=True)
class Response:
    """A reply to one request, ready to be written in the format of its API."""

    api: ApiName
    parts: tuple[Part, ...]
    id: str
    model: str = "m"
    usage: PromptUsage = field(default_factory=lambda: PromptUsage(100))
    output_tokens: int = 1
    stop: str = ""
    """The reason to stop in the words of the API; empty for the usual one."""
    with_usage: bool = True
    as_list: bool = False
    """Gemini streams a JSON list unless it is asked for events."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thought))

    @property
    def calls(self) -> list[tuple[str, Call]]:
        """Return the calls with their ids."""
        return [
            (self.call_id(number, part), part)
            for number, part in enumerate(self.parts)
            if isinstance(part, Call)
        ]

    def call_id(self, number: int, call: Call) -> str:
        prefix = "toolu_" if self.api == "anthropic" else "call_"
        return call.id or f"{prefix}{self.id[-12:]}{number}"


def sign(text: str) -> str:
    """Return the signature that the upstream gives a thought, and expects back.

    It is valid base64 in both alphabets: Google's SDK decodes and encodes it.
    """
    return hashlib.sha512(text.encode()).hexdigest() * 2


def split_text(text: str) -> list[str]:
    return [text[at : at + DELTA_CHARS] for at in range(0, len(text), DELTA_CHARS)]


def data_event(document: Json) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def named_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + data_event({"type": kind, **fields})

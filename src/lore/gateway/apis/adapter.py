"""The protocol of API adapters, with its records, response readers and error parser.

Adapters are pure: bytes and plans in, bytes and records out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lore.gateway import sse
from lore.gateway.apis.json_values import Json
from lore.gateway.plugin_protocol import LocalResponse
from lore.records.gateway import Block, Dialogue, Entry, Plan, TokenUse

if TYPE_CHECKING:
    from lore.gateway.apis.stream_rewriter import StreamRewriter

JSON_HEADERS = (("content-type", "application/json"),)
STREAM_HEADERS = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
)

MAX_RECALLS = 10
"""How often a model may call recall for one request (from the specification)."""

FindMarker = Callable[[str], str | None]
"""Returns the stored marker with an id, or None."""

MakeId = Callable[[], str]
"""Returns an unguessable id of letters and digits."""


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed request: its bytes and what they contain."""

    body: bytes
    document: Json
    dialogue: Dialogue
    entry_spans: tuple[tuple[int, int], ...]
    """For each entry, the range of items in the API's message list."""
    streams: bool = False
    tools: frozenset[str] = frozenset()
    is_expanded: bool = False
    """The document differs from the body: markers have been replaced by recall calls."""
    has_history: bool = True
    """The request contains the whole history; some clients leave it with the provider."""
    can_offer_recall: bool = True
    """The response can be rewritten, so recall may be offered."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the gateway offers to the model."""

    name: str
    description: str
    schema: Json


def unchanged_text(block: Block) -> str:
    """Return the text of a tool result as it is."""
    return block.text


@dataclass(frozen=True, slots=True)
class PromptAdditions:
    """What the gateway adds to a prompt."""

    knowledge: str = ""
    """Goes at the end of the system prompt, the same in every turn."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Go at the end of user entries, by entry key, in every later turn too."""
    annotate: Callable[[Block], str] = unchanged_text
    """Returns the short text that replaces an old tool result."""
    recall_tool: Tool | None = None


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """Error of an upstream; the sizes are set if the prompt was too long."""

    kind: str
    message: str
    is_too_long: bool = False
    prompt_tokens: int = 0
    limit_tokens: int = 0


_NO_USAGE = TokenUse()


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of an upstream."""

    entry: Entry | None = None
    usage: TokenUse = _NO_USAGE
    stop_reason: str = ""
    """Why it ended; empty if it was cut off."""
    error: ErrorDetails | None = None
    chars: int = 0
    """Number of characters that the model has written, including text that was discarded."""
    service_tier: str = ""
    """The service tier that answered, if the provider has several."""
    in_background: bool = False
    """The provider generates the response in the background, even if no client waits for it."""
    response_id: str = ""
    """The id under which a background response can be fetched."""


@dataclass(frozen=True, slots=True)
class RecallCall:
    """A recall call that the gateway runs."""

    id: str
    marker: str
    arguments: Json


class ApiAdapter(Protocol):
    """Adapter for one model API."""

    def parse_request(self, body: bytes, path: str = "") -> Request:
        """Parse a request to a path, or raise `InvalidInput` if its shape is not supported."""

    def expand_markers(self, request: Request, find: FindMarker) -> Request:
        """Replace markers by the recall calls and results that they stand for."""

    def rewrite_request(self, request: Request, plan: Plan, texts: PromptAdditions) -> bytes:
        """Return the prompt that a plan describes; the client's own bytes if nothing changes.

        Raises `InvalidInput` if the plan would make a prompt that the upstream rejects.
        """

    def read_reply(self, body: bytes, *, streams: bool) -> Reply:
        """Parse a response, complete or cut off."""

    def answer_with_text(self, request: Request, text: str) -> LocalResponse:
        """Answer a request with a text in place of the model."""

    def open_rewriter(
        self, request: Request, body: bytes, tool: Tool, make_id: MakeId
    ) -> StreamRewriter:
        """Return a rewriter for the responses to a request that was sent with this body."""


class Assembler(Protocol):
    """Assembles a response from the events of its stream."""

    def add_event(self, event: Json, /) -> None:
        """Add the next event."""

    def reply(self) -> Reply:
        """Return the parsed response once it has ended or was cut off."""


def read_stream(assembler: Assembler, stream: bytes) -> Reply:
    """Parse a streamed response; parsing all events at its end takes a third of the time."""
    for document in sse.documents(stream):
        assembler.add_event(document)
    return assembler.reply()


UNREADABLE_ERROR = "unreadable"
"""Kind of an error response that is not in the provider's format."""

_SIZES = (
    re.compile(r"prompt is too long: ([\d,]+) tokens > ([\d,]+)", re.IGNORECASE),
    re.compile(
        r"input token count \(([\d,]+)\) exceeds the maximum[^()]*\(([\d,]+)\)", re.IGNORECASE
    ),
    re.compile(r"input token count is ([\d,]+) but.{0,40}?supports up to ([\d,]+)", re.IGNORECASE),
)
"""Anthropic and Gemini: first the prompt size, then the limit."""

_SIZES_REVERSED = re.compile(
    r"(?:maximum context length is|exceed the configured limit of) ([\d,]+) tokens"
    r".{0,80}?(?:resulted in|requested(?: about)?) ([\d,]+) tokens",
    re.IGNORECASE | re.DOTALL,
)
"""OpenAI: first the limit, then the prompt size."""

_SIZES_WITH_ANSWER = re.compile(
    r"exceed context limit: ([\d,]+) \+ ([\d,]+) > ([\d,]+)", re.IGNORECASE
)
"""Anthropic, if prompt and max_tokens exceed the limit: prompt, max_tokens, limit."""

_TOO_LONG_PHRASES = (
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "context_length_exceeded",
    "exceeds the context window",
    "exceed the configured limit of",
    "maximum context length",
    "exceeds the maximum number of tokens",
)
"""How providers word that a prompt is too long, in lower case."""


def parse_error_message(kind: str, message: str) -> ErrorDetails:
    """Parse an error message, with the token counts that it contains."""
    for pattern in _SIZES:
        if match := pattern.search(message):
            return _too_long(kind, message, _parse_number(match[1]), _parse_number(match[2]))
    if match := _SIZES_REVERSED.search(message):
        return _too_long(kind, message, _parse_number(match[2]), _parse_number(match[1]))
    if match := _SIZES_WITH_ANSWER.search(message):
        prompt, answer, most = map(_parse_number, match.groups())
        return _too_long(kind, message, prompt, max(0, most - answer))
    lowered = message.lower()
    is_long = kind == "context_length_exceeded" or any(one in lowered for one in _TOO_LONG_PHRASES)
    return ErrorDetails(kind, message, is_long)


def _too_long(kind: str, message: str, prompt: int, most: int) -> ErrorDetails:
    return ErrorDetails(kind, message, is_too_long=True, prompt_tokens=prompt, limit_tokens=most)


def _parse_number(digits: str) -> int:
    return int(digits.replace(",", ""))

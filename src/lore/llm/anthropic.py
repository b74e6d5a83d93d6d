"""Chat with Anthropic's Messages API, through the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
from anthropic import Anthropic, transform_schema
from pydantic import BaseModel, ValidationError

from lore.llm.chat import ChatRequest, ChatResponse, Usage
from lore.llm.http_client import HttpChat, translate_sdk_error
from lore.llm.structured_output import (
    REFUSED,
    TRUNCATED,
    TokenCount,
    complete_schema,
    parse_partial,
    parse_response,
)
from lore.text import tokens

if TYPE_CHECKING:
    from lore.llm.presets import ProviderConfig

_UNREADABLE = "The answer is not one of Anthropic's Messages."
_PROBLEMS = {
    "max_tokens": TRUNCATED,
    "model_context_window_exceeded": TRUNCATED,
    "refusal": REFUSED,
}


class _Block(BaseModel):
    type: str
    text: str = ""


class _Usage(BaseModel):
    input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
    cache_read_input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None


class _UsageOnly(BaseModel):
    """The usage of an otherwise unreadable response: it was charged too."""

    usage: _Usage = _Usage()


class _Message(BaseModel):
    """The parts of a response that are used; the SDK itself accepts any shape."""

    type: str
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage = _Usage()


class AnthropicChat(HttpChat):
    """One model of Anthropic's."""

    def __init__(self, choice: ProviderConfig) -> None:
        super().__init__(choice)
        self._client = Anthropic(**self._client_options(), open_telemetry=False)

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Send one request and return the response, or raise a `ProviderError`."""
        messages: list[Any] = [{"role": one.role, "content": one.text} for one in request.messages]
        options: dict[str, Any] = {}
        if request.schema is not None:
            form = {
                "type": "json_schema",
                "schema": transform_schema(complete_schema(request.schema)),
            }
            options["output_config"] = {"format": form}
        try:
            answered = self._client.messages.with_raw_response.create(
                model=self._choice.model,
                max_tokens=request.max_tokens,
                system=request.system,
                messages=messages,
                **options,
            )
        except anthropic.AnthropicError as error:
            raise translate_sdk_error(anthropic, error, "Anthropic", self._choice.api_key) from None
        prompt = "\n".join((request.system, *(one.text for one in request.messages)))
        return _parse_body(answered.http_response.content, request, prompt)


def _parse_body(body: bytes, request: ChatRequest, prompt: str) -> ChatResponse:
    try:
        message = _Message.model_validate_json(body)
    except ValidationError:
        used = parse_partial(body, _UsageOnly)
        usage_so_far = (
            _usage(used.usage, prompt, body.decode(errors="replace")) if used else Usage()
        )
        return ChatResponse("", usage_so_far, problem=_UNREADABLE)
    text = "".join(block.text for block in message.content if block.type == "text")
    usage = _usage(message.usage, prompt, text)
    return parse_response(text, usage, request.schema, _PROBLEMS.get(message.stop_reason or "", ""))


def _usage(used: _Usage, prompt: str, text: str) -> Usage:
    """Return the usage, estimated where a proxy does not report it."""
    read, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    input_tokens = used.input_tokens + read + written
    if not input_tokens:
        return Usage(tokens.count(prompt), tokens.count(text))
    return Usage(input_tokens, used.output_tokens, read, written)

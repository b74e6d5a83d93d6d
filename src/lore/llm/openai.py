"""Chat with OpenAI's chat completions API, which many services and local servers offer too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
from openai import OpenAI
from pydantic import BaseModel, Field, ValidationError

from lore.llm.chat import ChatRequest, ChatResponse, Usage
from lore.llm.http_client import HttpChat, translate_sdk_error
from lore.llm.structured_output import (
    REFUSED,
    TRUNCATED,
    TokenCount,
    complete_schema,
    parse_partial,
    parse_response,
    schema_instruction,
)
from lore.text import tokens

if TYPE_CHECKING:
    from lore.llm.presets import ProviderConfig

_UNREADABLE = "The answer is no chat completion."
_PROBLEMS = {"length": TRUNCATED, "content_filter": REFUSED}


class _Part(BaseModel):
    type: str = ""
    text: str = ""


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        """Return the text of the message; some services send it in parts."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Details(BaseModel):
    cached_tokens: TokenCount | None = None


class _Usage(BaseModel):
    prompt_tokens: TokenCount = 0
    completion_tokens: TokenCount = 0
    prompt_tokens_details: _Details | None = None
    cost: float | None = Field(None, ge=0, allow_inf_nan=False)


class _UsageOnly(BaseModel):
    """The usage of an otherwise unreadable response: it was charged too."""

    usage: _Usage | None = None


class _Completion(BaseModel):
    """The parts of a response that are used; the SDK itself accepts any shape."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


class OpenAIChat(HttpChat):
    """One model of a service with the chat completions API."""

    def __init__(self, choice: ProviderConfig) -> None:
        super().__init__(choice)
        self._client = OpenAI(**self._client_options())
        # The SDK reads these from the environment, and would send them to any address.
        self._client.organization = None
        self._client.project = None

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Send one request and return the response, or raise a `ProviderError`."""
        preset = self._choice.preset
        options: dict[str, Any] = {preset.limit_field: request.max_tokens}
        system = request.system
        if request.schema is not None and preset.structured:
            options["response_format"] = _response_format(request.schema)
        elif request.schema is not None:
            system = f"{system}\n\n{schema_instruction(request.schema)}"
        dialogue: list[Any] = [{"role": one.role, "content": one.text} for one in request.messages]
        messages = [{"role": "system", "content": system}, *dialogue]
        try:
            answered = self._client.chat.completions.with_raw_response.create(
                model=self._choice.model, messages=messages, **options
            )
        except openai.OpenAIError as error:
            raise translate_sdk_error(openai, error, preset.name, self._choice.api_key) from None
        prompt = "\n".join(one["content"] for one in messages)
        return _parse_body(answered.http_response.content, request, prompt, self._choice.provider)


def _response_format(schema: type[BaseModel]) -> dict[str, object]:
    form = {"name": schema.__name__, "strict": True, "schema": complete_schema(schema)}
    return {"type": "json_schema", "json_schema": form}


def _parse_body(body: bytes, request: ChatRequest, prompt: str, provider: str) -> ChatResponse:
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        used = parse_partial(body, _UsageOnly)
        usage = (
            _usage(used.usage, prompt, body.decode(errors="replace"), provider) if used else None
        )
        return ChatResponse("", usage or Usage(), problem=_UNREADABLE)
    choice = completion.choices[0]
    text = choice.message.text
    problem = _PROBLEMS.get(choice.finish_reason or "", "")
    if choice.message.refusal:
        problem = REFUSED
    return parse_response(
        text, _usage(completion.usage, prompt, text, provider), request.schema, problem
    )


def _usage(used: _Usage | None, prompt: str, text: str, provider: str) -> Usage:
    """Return the usage, estimated where the server does not report it."""
    if used is None or not used.prompt_tokens:
        return Usage(tokens.count(prompt), tokens.count(text))
    cached = used.prompt_tokens_details.cached_tokens if used.prompt_tokens_details else 0
    return Usage(
        used.prompt_tokens,
        used.completion_tokens,
        min(cached or 0, used.prompt_tokens),
        usd=used.cost if provider == "openrouter" else None,
    )

"""A chat over OpenAI's chat completions, which many services and local servers speak too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
from openai import OpenAI
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lore.errors import ProviderError, ProviderUnavailable
from lore.llm.bounded import open_client
from lore.llm.chat import Ask, Reply, Usage
from lore.llm.reading import REFUSED, TRUNCATED, Count, read_part, read_reply, schema_request
from lore.llm.refusals import refusal, said_by
from lore.text import tokens

if TYPE_CHECKING:
    from lore.llm.presets import Choice

_UNREADABLE = "The answer is no chat completion."
_PROBLEMS = {"length": TRUNCATED, "content_filter": REFUSED}


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")
    type: str = ""
    text: str = ""


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")
    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        """Return what the message says; some services give it in parts."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _Choice(BaseModel):
    model_config = ConfigDict(extra="ignore")
    message: _Message
    finish_reason: str | None = None


class _Details(BaseModel):
    model_config = ConfigDict(extra="ignore")
    cached_tokens: Count | None = None


class _Usage(BaseModel):
    model_config = ConfigDict(extra="ignore")
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    prompt_tokens_details: _Details | None = None
    cost: float | None = Field(None, ge=0, allow_inf_nan=False)


class _Used(BaseModel):
    """What is read of an answer that cannot be used otherwise: it was charged for, too."""

    model_config = ConfigDict(extra="ignore")
    usage: _Usage | None = None


class _Completion(BaseModel):
    """The parts of an answer that are read; the SDK itself takes an answer of any shape."""

    model_config = ConfigDict(extra="ignore")
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


class OpenAIChat:
    """One model of one service that speaks chat completions."""

    def __init__(self, choice: Choice) -> None:
        self.identity = choice.identity
        self._choice = choice
        self._http = open_client(choice.base_url, choice.timeout_s)
        self._client = OpenAI(
            api_key=choice.key,
            base_url=choice.base_url,
            timeout=choice.timeout_s,
            max_retries=0,
            http_client=self._http,
        )
        # The SDK takes these from the environment, and would tell them to any address.
        self._client.organization = None
        self._client.project = None

    def ask(self, ask: Ask) -> Reply:
        """Ask once, and return the answer or raise a `ProviderError`."""
        preset = self._choice.preset
        given: dict[str, Any] = {preset.limit_field: ask.max_tokens}
        system = ask.system
        if ask.schema is not None and preset.structured:
            given["response_format"] = _format(ask.schema)
        elif ask.schema is not None:
            system = f"{system}\n\n{schema_request(ask.schema)}"
        said: list[Any] = [{"role": one.role, "content": one.text} for one in ask.messages]
        messages = [{"role": "system", "content": system}, *said]
        try:
            answered = self._client.chat.completions.with_raw_response.create(
                model=self._choice.model, messages=messages, **given
            )
        except openai.OpenAIError as error:
            raise translated(error, preset.name, self._choice.key) from None
        told = "\n".join(one["content"] for one in messages)
        return _read(answered.http_response.content, ask, told, self._choice.provider)

    def close(self) -> None:
        """End what is under way, and give everything back."""
        self._http.close()


def translated(error: openai.OpenAIError, name: str = "OpenAI", key: str = "") -> ProviderError:
    """Return the error of the SDK as one of ours, without the key in it."""
    if isinstance(error, openai.APIStatusError):
        said = said_by(error.body, key)
        return refusal(name, error.status_code, said, error.response.headers)
    if isinstance(error, openai.APITimeoutError):
        msg = f"{name} took too long to answer."
        hint = "chat.timeout_s says how long an answer may take."
        return ProviderUnavailable(msg, hint=hint, billed=True)
    if isinstance(error, openai.APIConnectionError):
        msg = f"{name} cannot be reached ({type(error.__cause__ or error).__name__})."
        return ProviderUnavailable(msg, hint="Check the network and chat.base_url.")
    return ProviderUnavailable(f"OpenAI's SDK failed ({type(error).__name__}).")


def _format(schema: type[BaseModel]) -> dict[str, object]:
    form = {"name": schema.__name__, "strict": True, "schema": schema.model_json_schema()}
    return {"type": "json_schema", "json_schema": form}


def _read(body: bytes, ask: Ask, told: str, provider: str) -> Reply:
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        used = read_part(body, _Used)
        taken = _usage(used.usage, told, body.decode(errors="replace"), provider) if used else None
        return Reply("", taken or Usage(), problem=_UNREADABLE)
    choice = completion.choices[0]
    text = choice.message.text
    problem = _PROBLEMS.get(choice.finish_reason or "", "")
    if choice.message.refusal:
        problem = REFUSED
    return read_reply(text, _usage(completion.usage, told, text, provider), ask.schema, problem)


def _usage(used: _Usage | None, told: str, text: str, provider: str) -> Usage:
    """Return what an answer took, estimated where the server does not tell."""
    if used is None or not used.prompt_tokens:
        return Usage(tokens.count(told), tokens.count(text))
    cached = used.prompt_tokens_details.cached_tokens if used.prompt_tokens_details else 0
    return Usage(
        used.prompt_tokens,
        used.completion_tokens,
        min(cached or 0, used.prompt_tokens),
        usd=used.cost if provider == "openrouter" else None,
    )

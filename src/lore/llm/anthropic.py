"""A chat with Anthropic's Messages, through the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
from anthropic import Anthropic, transform_schema
from pydantic import BaseModel, ConfigDict, ValidationError

from lore.errors import ProviderError, ProviderUnavailable
from lore.llm.bounded import open_client
from lore.llm.chat import Ask, Reply, Usage
from lore.llm.reading import REFUSED, TRUNCATED, Count, read_part, read_reply
from lore.llm.refusals import refusal, said_by
from lore.text import tokens

if TYPE_CHECKING:
    from lore.llm.presets import Choice

_UNREADABLE = "The answer is not one of Anthropic's Messages."
_PROBLEMS = {
    "max_tokens": TRUNCATED,
    "model_context_window_exceeded": TRUNCATED,
    "refusal": REFUSED,
}


class _Block(BaseModel):
    model_config = ConfigDict(extra="ignore")
    type: str
    text: str = ""


class _Usage(BaseModel):
    model_config = ConfigDict(extra="ignore")
    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class _Used(BaseModel):
    """What is read of an answer that cannot be used otherwise: it was charged for, too."""

    model_config = ConfigDict(extra="ignore")
    usage: _Usage = _Usage()


class _Message(BaseModel):
    """The parts of an answer that are read; the SDK itself takes an answer of any shape."""

    model_config = ConfigDict(extra="ignore")
    type: str
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage = _Usage()


class AnthropicChat:
    """One model of Anthropic's."""

    def __init__(self, choice: Choice) -> None:
        self.identity = choice.identity
        self._choice = choice
        self._http = open_client(choice.base_url, choice.timeout_s)
        self._client = Anthropic(
            api_key=choice.key,
            base_url=choice.base_url,
            timeout=choice.timeout_s,
            max_retries=0,
            http_client=self._http,
            open_telemetry=False,
        )

    def ask(self, ask: Ask) -> Reply:
        """Ask once, and return the answer or raise a `ProviderError`."""
        messages: list[Any] = [{"role": one.role, "content": one.text} for one in ask.messages]
        given: dict[str, Any] = {}
        if ask.schema is not None:
            form = {"type": "json_schema", "schema": transform_schema(ask.schema)}
            given["output_config"] = {"format": form}
        try:
            answered = self._client.messages.with_raw_response.create(
                model=self._choice.model,
                max_tokens=ask.max_tokens,
                system=ask.system,
                messages=messages,
                **given,
            )
        except anthropic.AnthropicError as error:
            raise translated(error, self._choice.key) from None
        told = "\n".join((ask.system, *(one.text for one in ask.messages)))
        return _read(answered.http_response.content, ask, told)

    def close(self) -> None:
        """End what is under way, and give everything back."""
        self._http.close()


def translated(error: anthropic.AnthropicError, key: str = "") -> ProviderError:
    """Return the error of the SDK as one of ours, without the key in it."""
    if isinstance(error, anthropic.APIStatusError):
        said = said_by(error.body, key)
        return refusal("Anthropic", error.status_code, said, error.response.headers)
    if isinstance(error, anthropic.APITimeoutError):
        msg = "Anthropic took too long to answer."
        hint = "chat.timeout_s says how long an answer may take."
        return ProviderUnavailable(msg, hint=hint, billed=True)
    if isinstance(error, anthropic.APIConnectionError):
        msg = f"Anthropic cannot be reached ({type(error.__cause__ or error).__name__})."
        return ProviderUnavailable(msg, hint="Check the network and chat.base_url.")
    return ProviderUnavailable(f"Anthropic's SDK failed ({type(error).__name__}).")


def _read(body: bytes, ask: Ask, told: str) -> Reply:
    try:
        message = _Message.model_validate_json(body)
    except ValidationError:
        used = read_part(body, _Used)
        taken = _usage(used.usage, told, body.decode(errors="replace")) if used else Usage()
        return Reply("", taken, problem=_UNREADABLE)
    text = "".join(block.text for block in message.content if block.type == "text")
    usage = _usage(message.usage, told, text)
    return read_reply(text, usage, ask.schema, _PROBLEMS.get(message.stop_reason or "", ""))


def _usage(used: _Usage, told: str, text: str) -> Usage:
    """Return what an answer took, estimated where whoever stands between does not tell."""
    read, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    given = used.input_tokens + read + written
    if not given:
        return Usage(tokens.count(told), tokens.count(text))
    return Usage(given, used.output_tokens, read, written)

"""What a status of HTTP means for whoever asked: the errors of providers in our own words."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping

from lore import clock
from lore.errors import (
    PromptTooLong,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
)
from lore.text import words

_TOO_LONG = (
    "too long", "too large", "context length", "context window", "context_length_exceeded",
    "maximum context", "request_too_large", "max_model_len", "exceeds the available context",
    "input token count",
)  # fmt: skip
"""How the services and local servers say that a prompt does not fit, in an answer of 400."""

_NO_MONEY = ("insufficient_quota", "credit balance", "billing")
_BUSY = (429, 503, 529)
_BAD_KEY = (401, 403)
_LONGEST_SAID_CHARS = 200
_LONGEST_WAIT_S = 86_400.0


def refusal(name: str, status: int, said: str, headers: Mapping[str, str]) -> ProviderError:
    """Return the error that an answer with a status other than 200 is."""
    lowered = said.lower()
    told = f"{name} answers with status {status}" + (f": {said}" if said else ".")
    if status == 413 or (status == 400 and any(sign in lowered for sign in _TOO_LONG)):
        return PromptTooLong(told)
    if any(sign in lowered for sign in _NO_MONEY):
        return ProviderUnavailable(told, hint="Look at the account of the provider.")
    if status in _BUSY:
        return RateLimited(told, hint="Try again later.", retry_after_s=_retry_after_s(headers))
    if status in _BAD_KEY:
        msg = f"{name} refuses the access key (status {status})."
        return ProviderUnavailable(msg, hint="Check chat.api_key.")
    hint = "Check chat.model and chat.base_url." if status < 500 else "Try again later."
    return ProviderUnavailable(told, hint=hint)


def said_by(body: object, *secrets: str) -> str:
    """Return on one line what an error document says, without the secrets in it.

    A document that is none may quote what was asked, and is not repeated.
    """
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else inner
    kinds = [inner.get(name) for name in ("type", "code")] if isinstance(inner, dict) else []
    if not isinstance(message, str):
        return ""
    told = words.clean(" ".join([*(kind for kind in kinds if isinstance(kind, str)), message]))
    for secret in secrets:
        told = told.replace(secret, "…") if secret else told
    return " ".join(told.split())[:_LONGEST_SAID_CHARS]


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return for how long a service wants to be left alone, by seconds or by a date."""
    told = headers.get("retry-after-ms", "")
    if told.isascii() and told.isdigit():
        return min(int(told[:12]) / 1000, _LONGEST_WAIT_S)
    told = headers.get("retry-after", "").strip()
    if told.isascii() and told.replace(".", "", 1).isdigit():
        return min(float(told[:12]), _LONGEST_WAIT_S)
    date = email.utils.parsedate_tz(told)
    if date is None:
        return 0.0
    try:
        until = email.utils.mktime_tz(date)
    except (OverflowError, ValueError):
        return 0.0
    return min(max(until - clock.now().timestamp(), 0.0), _LONGEST_WAIT_S)

"""Retry provider calls: back off while rate-limited, and ask again for an unusable answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from lore.errors import BadReply, RateLimited
from lore.llm.chat import Chat, ChatMessage, ChatRequest, ChatResponse

FIRST_BACKOFF_S = 2.0
MAX_WAIT_S = 90.0
"""The limit for all backoff pauses of one request together:

background work yields after some seconds, and a failed job is retried later anyway.
"""

_MAX_QUOTED_CHARS = 4_000
_EMPTY_RESPONSE = "(no text)"

Attempt = Callable[[ChatRequest], ChatResponse]
"""Sends a request once, and records its cost."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How retries wait; tests pass a `sleep` that returns at once."""

    sleep: Callable[[float], None] = time.sleep
    max_wait_s: float = MAX_WAIT_S


def send_with_retry(
    chat: Chat, request: ChatRequest, attempt: Attempt, policy: RetryPolicy
) -> ChatResponse:
    """Send a request with retries; return a usable response or raise the last `ProviderError`."""
    response = _send_with_backoff(request, attempt, policy)
    if not response.problem:
        return response
    second = _send_with_backoff(_repair_request(request, response), attempt, policy)
    if second.problem:
        msg = f"{chat.identity} gave no usable answer, also on a second request. {second.problem}"
        raise BadReply(msg)
    return second


def _send_with_backoff(request: ChatRequest, attempt: Attempt, policy: RetryPolicy) -> ChatResponse:
    left_s, backoff_s = policy.max_wait_s, FIRST_BACKOFF_S
    while True:
        try:
            return attempt(request)
        except RateLimited as error:
            # Jitter: clients that were rejected together must not come back together.
            jitter = 1 + random.random() / 4  # noqa: S311 - spreads, hides nothing
            wait_s = (error.retry_after_s or backoff_s) * jitter
            if wait_s > left_s:
                raise
        policy.sleep(wait_s)
        left_s -= wait_s
        backoff_s *= 2


def _repair_request(request: ChatRequest, response: ChatResponse) -> ChatRequest:
    quoted = response.text.strip()[:_MAX_QUOTED_CHARS] or _EMPTY_RESPONSE
    instruction = f"{response.problem}\nAnswer the question again, in the form that was asked for."
    added = (ChatMessage("assistant", quoted), ChatMessage("user", instruction))
    return replace(request, messages=(*request.messages, *added))

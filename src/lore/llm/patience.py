"""Patience with a chat: a busy one is asked later, one that answers badly is asked once more."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from lore.errors import BadReply, RateLimited
from lore.llm.chat import Ask, Chat, ChatMessage, Reply

FIRST_PAUSE_S = 2.0
LONGEST_WAIT_S = 90.0
"""For all pauses of one question together; a chore gives way to others after some seconds, and a
job that fails is tried again later anyway."""

_LONGEST_REPEATED_CHARS = 4_000
_NOTHING = "(no text)"

Attempt = Callable[[Ask], Reply]
"""Asks once; whoever counts money stands here."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How waiting is done; a test waits for nothing."""

    sleep: Callable[[float], None] = time.sleep
    longest_wait_s: float = LONGEST_WAIT_S


def ask_patiently(chat: Chat, ask: Ask, attempt: Attempt, patience: Patience) -> Reply:
    """Return an answer of use, or raise the `ProviderError` that was left in the end."""
    reply = _ask_when_free(ask, attempt, patience)
    if not reply.problem:
        return reply
    again = _ask_when_free(_again(ask, reply), attempt, patience)
    if again.problem:
        msg = f"{chat.identity} gave no answer of use, also when asked again. {again.problem}"
        raise BadReply(msg)
    return again


def _ask_when_free(ask: Ask, attempt: Attempt, patience: Patience) -> Reply:
    left_s, pause_s = patience.longest_wait_s, FIRST_PAUSE_S
    while True:
        try:
            return attempt(ask)
        except RateLimited as error:
            # Those who were turned away together should not come back together.
            spread = 1 + random.random() / 4  # noqa: S311 - spreads, hides nothing
            wait_s = (error.retry_after_s or pause_s) * spread
            if wait_s > left_s:
                raise
        patience.sleep(wait_s)
        left_s -= wait_s
        pause_s *= 2


def _again(ask: Ask, reply: Reply) -> Ask:
    former = reply.text.strip()[:_LONGEST_REPEATED_CHARS] or _NOTHING
    request = f"{reply.problem}\nAnswer the question again, in the form that was asked for."
    added = (ChatMessage("assistant", former), ChatMessage("user", request))
    return replace(ask, messages=(*ask.messages, *added))

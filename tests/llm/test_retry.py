from __future__ import annotations

from itertools import pairwise

import pytest

from lore.errors import BadReply, ProviderUnavailable, RateLimited
from lore.llm.chat import ChatMessage, ChatRequest, ChatResponse
from lore.llm.retry import MAX_WAIT_S, RetryPolicy, send_with_retry
from lore.llm.structured_output import Insight
from tests.llm.fakes import ScriptedChat

QUESTION = ChatRequest("s", (ChatMessage("user", "Well?"),), 10, Insight)
GOOD = '{"insight": "Yes.", "from_items": []}'


def send(chat: ScriptedChat, slept: list[float]) -> ChatResponse:
    return send_with_retry(chat, QUESTION, chat.complete, RetryPolicy(sleep=slept.append))


def test_a_rate_limited_request_is_retried_after_the_time_it_names():
    slept: list[float] = []
    chat = ScriptedChat(RateLimited("busy", retry_after_s=4), GOOD)
    assert send(chat, slept).value == Insight(insight="Yes.", from_items=[])
    (wait_s,) = slept
    assert 4 <= wait_s <= 5


def test_backoff_doubles_without_retry_after():
    slept: list[float] = []
    send(ScriptedChat(*[RateLimited("busy")] * 4, GOOD), slept)
    assert all(later > earlier for earlier, later in pairwise(slept))


def test_the_total_backoff_is_limited():
    slept: list[float] = []
    with pytest.raises(RateLimited):
        send(ScriptedChat(*[RateLimited("busy")] * 50), slept)
    assert sum(slept) <= MAX_WAIT_S


def test_a_retry_after_of_an_hour_is_not_awaited():
    slept: list[float] = []
    with pytest.raises(RateLimited):
        send(ScriptedChat(RateLimited("busy", retry_after_s=3600)), slept)
    assert not slept


def test_an_unusable_answer_is_requested_again_once_with_its_problem():
    chat = ScriptedChat('{"insight": 3}', GOOD)
    assert send(chat, []).value
    again = chat.asked[1].messages
    assert [one.role for one in again] == ["user", "assistant", "user"]
    assert again[1].text == '{"insight": 3}'
    assert "insight: Input should be a valid string" in again[2].text


def test_an_empty_answer_is_requested_again():
    chat = ScriptedChat("", GOOD)
    assert send(chat, []).value
    assert all(one.text.strip() for one in chat.asked[1].messages)


def test_two_bad_answers_are_an_error_that_quotes_neither():
    with pytest.raises(BadReply) as caught:
        send(ScriptedChat('{"hunter2": 1}', "hunter2"), [])
    assert "hunter2" not in str(caught.value)
    assert ScriptedChat.identity in str(caught.value)


def test_an_unreachable_provider_is_not_retried():
    chat = ScriptedChat(ProviderUnavailable("gone"), GOOD)
    with pytest.raises(ProviderUnavailable):
        send(chat, [])
    assert len(chat.asked) == 1

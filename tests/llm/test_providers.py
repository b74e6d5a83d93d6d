"""The two SDKs against a provider that answers in every way: a reply, or an error of ours."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel, ConfigDict

from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.llm.anthropic import AnthropicChat
from lore.llm.chat import Chat, ChatMessage, ChatRequest, ChatResponse, Usage
from lore.llm.http_client import MAX_BODY_BYTES, translate_sdk_error
from lore.llm.openai import OpenAIChat
from lore.llm.structured_output import EMPTY, REFUSED, TRUNCATED
from tests.llm.provider_server import (
    Provider,
    ScriptedAnswer,
    chat_body,
    messages_body,
    scripted_answer,
)


class Number(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    n: int


PLAIN = ChatRequest("Be brief.", (ChatMessage("user", "How many?"),), 50)
WITH_SCHEMA = ChatRequest("Be brief.", (ChatMessage("user", "How many?"),), 50, Number)
BOTH = pytest.mark.parametrize("name", ["anthropic", "openai"])


def open_chat(provider: Provider, name: str, timeout_s: float = 20.0) -> Chat:
    choice = provider.choice(name, timeout_s)
    return AnthropicChat(choice) if name == "anthropic" else OpenAIChat(choice)


def body(name: str, text: str, **changed: Any) -> dict[str, Any]:
    return messages_body(text, **changed) if name == "anthropic" else chat_body(text, **changed)


def ask(
    provider: Provider,
    name: str,
    answer: ScriptedAnswer,
    asked: ChatRequest = PLAIN,
    timeout_s: float = 20.0,
) -> ChatResponse:
    provider.script.append(answer)
    with closing(open_chat(provider, name, timeout_s)) as chat:
        return chat.complete(asked)


@BOTH
def test_a_text_response_reports_its_usage(provider, name):
    reply = ask(provider, name, scripted_answer(body(name, "Three.")))
    assert (reply.text, reply.value, reply.problem) == ("Three.", None, "")
    assert reply.usage.input_tokens == 120
    assert reply.usage.cache_read_tokens == 20
    assert reply.usage.output_tokens == 30


@BOTH
def test_a_structured_response_is_parsed_and_validated(provider, name):
    reply = ask(provider, name, scripted_answer(body(name, '{"n": 3}')), WITH_SCHEMA)
    assert reply.value == Number(n=3)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"n": 3}\n```',
        '```\n{"n": 3}```',
        'Here it is:\n\n```json\n{"n": 3}\n```\nDone.',
        'It is {"n": 3}.',
    ],
)
def test_json_between_fences_or_prose_is_parsed(provider, name, text):
    assert ask(provider, name, scripted_answer(body(name, text)), WITH_SCHEMA).value == Number(n=3)


@BOTH
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"n": 3', "does not fit the schema"),
        ('{"n": "3"}', "n: Input should be a valid integer"),
        ('{"m": 3}', "n: Field required"),
        ('{"n": 3, "m": 4}', "m: Extra inputs are not permitted"),
        ("I cannot say.", "does not fit the schema"),
        ("[]", "does not fit the schema"),
    ],
)
def test_a_value_that_does_not_match_the_schema_is_described(provider, name, text, told):
    reply = ask(provider, name, scripted_answer(body(name, text)), WITH_SCHEMA)
    assert reply.value is None
    assert told in reply.problem
    assert reply.usage.output_tokens == 30


def test_an_error_about_a_bad_value_says_only_what_is_wrong(provider):
    reply = ask(provider, "openai", scripted_answer(chat_body('{"n": "hunter2"}')), WITH_SCHEMA)
    assert "hunter2" not in reply.problem


@pytest.mark.parametrize(
    ("name", "changed", "problem"),
    [
        ("anthropic", {"stop_reason": "max_tokens"}, TRUNCATED),
        ("anthropic", {"stop_reason": "model_context_window_exceeded"}, TRUNCATED),
        ("anthropic", {"stop_reason": "refusal"}, REFUSED),
        ("anthropic", {"content": []}, EMPTY),
        ("anthropic", {"content": [{"type": "tool_use", "name": "x", "input": {}}]}, EMPTY),
        ("openai", {"finish_reason": "length"}, TRUNCATED),
        ("openai", {"finish_reason": "content_filter"}, REFUSED),
        ("openai", {"message": {"role": "assistant", "refusal": "No."}}, REFUSED),
        ("openai", {"message": {"role": "assistant", "content": None}}, EMPTY),
        ("openai", {"message": {"role": "assistant", "content": "  \n"}}, EMPTY),
    ],
)
def test_a_truncated_refused_or_empty_answer_has_a_problem(provider, name, changed, problem):
    reply = ask(provider, name, scripted_answer(body(name, "It is", **changed)))
    assert reply.problem == problem


def test_text_in_several_parts_is_joined(provider):
    parts = [{"type": "text", "text": "Th"}, {"type": "text", "text": "ree"}]
    answer = scripted_answer(chat_body("", message={"role": "assistant", "content": parts}))
    assert ask(provider, "openai", answer).text == "Three"


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        scripted_answer(b"", kind="application/json"),
        scripted_answer(b"<html>Welcome</html>", kind="text/html"),
        scripted_answer(b"{"),
        scripted_answer([]),
        scripted_answer({"choices": [], "content": "x"}),
        scripted_answer(b"\xff\xfe\x00"),
        scripted_answer(b"null"),
        scripted_answer(b"[" * 100_000),
        scripted_answer({"type": "message", "content": [{"type": "text", "text": 3}]}),
    ],
)
def test_an_unreadable_answer_has_a_problem(provider, name, answer):
    reply = ask(provider, name, answer)
    assert reply.problem
    assert reply.value is None


@BOTH
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ProviderUnavailable),
        (401, ProviderUnavailable),
        (403, ProviderUnavailable),
        (404, ProviderUnavailable),
        (408, ProviderUnavailable),
        (409, ProviderUnavailable),
        (413, PromptTooLong),
        (422, ProviderUnavailable),
        (429, RateLimited),
        (500, ProviderUnavailable),
        (502, ProviderUnavailable),
        (503, RateLimited),
        (504, ProviderUnavailable),
        (529, RateLimited),
        (302, ProviderUnavailable),
        (307, ProviderUnavailable),
    ],
)
def test_every_status_has_its_error(provider, name, status, kind):
    elsewhere = (("Location", "http://127.0.0.1:9/elsewhere"),)
    with pytest.raises(kind) as caught:
        ask(provider, name, scripted_answer({"error": {"message": "Not so."}}, status, elsewhere))
    assert type(caught.value) is kind
    assert len(provider.requests) == 1


@BOTH
@pytest.mark.parametrize(
    "told",
    [
        "prompt is too long: 300000 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens.",
        "context_length_exceeded",
    ],
)
def test_a_prompt_that_is_too_long_has_its_own_error(provider, name, told):
    with pytest.raises(PromptTooLong):
        ask(provider, name, scripted_answer({"error": {"message": told}}, 400))


@BOTH
def test_an_empty_account_is_not_a_rate_limit(provider, name):
    wrong = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    with pytest.raises(ProviderUnavailable):
        ask(provider, name, scripted_answer(wrong, 429))


@BOTH
@pytest.mark.parametrize(
    ("header", "told", "wait_s"),
    [
        ("retry-after", "7", 7),
        ("retry-after", "1.5", 1.5),
        ("retry-after-ms", "250", 0.25),
        ("retry-after", "Mon, 01 Jan 2001 00:00:00 GMT", 0),
        ("retry-after", "soon", 0),
        ("retry-after", "-5", 0),
        ("retry-after", "9" * 400, 86_400),
        ("retry-after", "Mon, 01 Jan 9999 00:00:00 GMT", 86_400),
    ],
)
def test_retry_after_is_parsed_from_seconds_or_a_date(provider, name, header, told, wait_s):
    with pytest.raises(RateLimited) as caught:
        ask(provider, name, scripted_answer({}, 429, ((header, told),)))
    assert caught.value.retry_after_s == wait_s


@BOTH
def test_no_error_contains_the_api_key(provider, name):
    with pytest.raises(ProviderError) as caught:
        ask(
            provider,
            name,
            scripted_answer({"error": {"message": "Your key sk-secret is odd"}}, 400),
        )
    assert "sk-secret" not in str(caught.value)
    assert "is odd" in str(caught.value)
    assert "sk-secret" not in repr(provider.choice(name))


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer(()),
        ScriptedAnswer((), reset=True),
        ScriptedAnswer((b"HTTP/1.1 200 OK\r\nContent-Le",), reset=True),
        ScriptedAnswer((b"nonsense\r\n\r\n",)),
        scripted_answer(b'{"a": 1}', length=500),
        scripted_answer(b'{"a": 1}', length=500, reset=True),
        scripted_answer(gzip.compress(b"{}" * 10), headers=(("Content-Encoding", "gzip"),)),
        scripted_answer(b" " * (MAX_BODY_BYTES + 1)),
        scripted_answer(b" " * (MAX_BODY_BYTES + 1), 500),
    ],
    ids=[
        "closed",
        "reset",
        "half",
        "no http",
        "short",
        "short reset",
        "packed",
        "huge",
        "huge error",
    ],
)
def test_a_connection_that_fails_is_unavailable(provider, name, answer):
    with pytest.raises(ProviderUnavailable):
        ask(provider, name, answer)


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer((), hold_s=60),
        scripted_answer(b"{}", length=500, hold_s=60),
        ScriptedAnswer(tuple([b"HTTP/1.1 200 OK\r\nX: "] + [b"x"] * 1200), pause_s=0.05),
        ScriptedAnswer(
            tuple([b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"] + [b" "] * 1200), 0.05
        ),
    ],
    ids=["silence", "stalled", "slow header", "slow body"],
)
def test_a_slow_response_is_aborted_at_the_deadline(provider, name, answer):
    with pytest.raises(ProviderUnavailable) as caught:
        ask(provider, name, answer, timeout_s=0.5)
    assert caught.value.billed


@BOTH
def test_close_aborts_running_requests(provider, name):
    import threading

    provider.script.append(ScriptedAnswer((), hold_s=60))
    chat = open_chat(provider, name, 60)
    caught: list[Exception] = []

    def wait() -> None:
        try:
            chat.complete(PLAIN)
        except ProviderError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not provider.requests:
        thread.join(0.01)
    chat.close()
    thread.join()
    assert caught


@BOTH
def test_the_sdk_does_not_retry(provider, name):
    with pytest.raises(ProviderError):
        ask(provider, name, scripted_answer({}, 500))
    assert len(provider.requests) == 1


def test_anthropic_gets_the_schema_and_no_tools(provider):
    ask(provider, "anthropic", scripted_answer(messages_body('{"n": 3}')), WITH_SCHEMA)
    (request,) = provider.requests
    assert request["output_config"]["format"]["type"] == "json_schema"
    assert request["system"] == "Be brief."
    assert request["max_tokens"] == 50
    assert "tools" not in request


@pytest.mark.parametrize(
    ("name", "limit", "structured"),
    [
        ("openai", "max_completion_tokens", True),
        ("gemini", "max_tokens", True),
        ("ollama", "max_tokens", True),
        ("vllm", "max_tokens", True),
        ("openrouter", "max_tokens", False),
    ],
)
def test_openai_compatible_services_differ_by_preset(provider, name, limit, structured):
    ask(provider, name, scripted_answer(chat_body('{"n": 3}')), WITH_SCHEMA)
    (request,) = provider.requests
    assert request[limit] == 50
    assert "tools" not in request
    if structured:
        form = request["response_format"]["json_schema"]
        assert form["strict"]
        assert form["schema"]["additionalProperties"] is False
    else:
        assert "response_format" not in request
        assert json.dumps(Number.model_json_schema()["title"]) in request["messages"][0]["content"]


def test_openrouter_reports_what_it_charged(provider):
    answer = {
        **chat_body("Three."),
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "cost": 0.5},
    }
    assert ask(provider, "openrouter", scripted_answer(answer)).usage.usd == 0.5
    assert ask(provider, "openai", scripted_answer(answer)).usage.usd is None


def test_usage_is_estimated_where_a_server_reports_none(provider):
    answer = chat_body("Three.")
    del answer["usage"]
    usage = ask(provider, "ollama", scripted_answer(answer)).usage
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0


def test_no_organization_header_is_sent_to_a_custom_address(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    ask(provider, "vllm", scripted_answer(chat_body("Three.")))
    assert "mine" not in provider.heads[0]


def sdk_errors(root: type[Exception], module: Any) -> list[type[Exception]]:
    """Return every exception that an SDK has, the hidden ones too."""
    found, waiting = [], [root]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return found


def made(kind: type[Exception], module: Any) -> Exception:
    """Make an exception as the SDK would."""
    request = httpx2.Request("POST", "http://127.0.0.1/")
    status = getattr(kind, "status_code", 500)
    response = httpx2.Response(status if isinstance(status, int) else 500, request=request)
    wrong: Exception = kind.__new__(kind)
    Exception.__init__(wrong, "wrong")
    vars(wrong).update(response=response, request=request, body=None, message="wrong")
    if issubclass(kind, module.APIStatusError):
        vars(wrong)["status_code"] = response.status_code
    return wrong


@pytest.mark.parametrize("kind", sdk_errors(anthropic.AnthropicError, anthropic))
def test_every_error_of_anthropics_sdk_is_translated(kind):
    wrong = made(kind, anthropic)
    assert isinstance(wrong, anthropic.AnthropicError)
    assert isinstance(translate_sdk_error(anthropic, wrong, "Anthropic", ""), ProviderError)


@pytest.mark.parametrize("kind", sdk_errors(openai.OpenAIError, openai))
def test_every_error_of_openais_sdk_is_translated(kind):
    wrong = made(kind, openai)
    assert isinstance(wrong, openai.OpenAIError)
    assert isinstance(translate_sdk_error(openai, wrong, "OpenAI", ""), ProviderError)


def test_the_enumeration_of_sdk_errors_is_not_empty():
    assert anthropic.RateLimitError in sdk_errors(anthropic.AnthropicError, anthropic)
    assert openai.RateLimitError in sdk_errors(openai.OpenAIError, openai)
    assert isinstance(
        translate_sdk_error(anthropic, made(anthropic.RateLimitError, anthropic), "Anthropic", ""),
        RateLimited,
    )


@BOTH
def test_an_unreadable_answer_reports_its_usage(provider, name):
    used = (
        {"input_tokens": 900, "output_tokens": 70}
        if name == "anthropic"
        else {"prompt_tokens": 900, "completion_tokens": 70}
    )
    broken = {"content": "neither blocks nor choices", "choices": [], "usage": used}
    reply = ask(provider, name, scripted_answer(broken))
    assert reply.problem
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (900, 70)


@BOTH
def test_usage_is_estimated_where_an_unreadable_answer_reports_none(provider, name):
    reply = ask(provider, name, scripted_answer({"choices": [], "content": "some words of no use"}))
    assert reply.problem
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert ask(provider, name, scripted_answer(b"<html></html>", kind="text/html")).usage == Usage()

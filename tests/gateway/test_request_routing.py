from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from lore.errors import InvalidInput
from lore.gateway.plugin_protocol import Provider
from lore.gateway.request_head import (
    RequestHead,
    Upstreams,
    api_of,
    background_response_id,
    may_cost,
    normalize_path,
    path_label,
    provider_of,
)

UPSTREAMS = Upstreams(
    "https://a.example", "https://o.example/v1", "https://g.example/api/", "https://c.example/codex"
)


@pytest.mark.parametrize(
    ("method", "path", "wire"),
    [
        ("POST", "/v1/messages", "anthropic"),
        ("POST", "/v1/messages/count_tokens", "anthropic"),
        ("POST", "/v1/chat/completions", "chat"),
        ("POST", "/chat/completions", "chat"),
        ("POST", "/v1/responses", "responses"),
        ("POST", "/responses", "responses"),
        ("POST", "/v1beta/models/gemini-3-pro:generateContent", "gemini"),
        ("POST", "/v1beta/models/gemini-3-pro:streamGenerateContent", "gemini"),
        ("POST", "/v1beta/models/gemini-3-pro:countTokens", ""),
        ("POST", "/v1beta/openai/chat/completions", "chat"),
        ("GET", "/v1/responses", ""),
        ("GET", "/v1/messages", ""),
        ("POST", "/v1/messages/batches", ""),
        ("POST", "/v1/responses/resp_1/cancel", ""),
        ("POST", "/v1/embeddings", ""),
    ],
)
def test_api_is_found_by_method_and_path(method: str, path: str, wire: str):
    assert api_of(method, path) == wire


@pytest.mark.parametrize(
    ("method", "path", "id_"),
    [
        ("GET", "/v1/responses/resp_1", "resp_1"),
        ("GET", "/responses/resp_1", "resp_1"),
        ("POST", "/v1/responses/resp_1/cancel", "resp_1"),
        ("POST", "/v1/responses/resp_1", ""),
        ("DELETE", "/v1/responses/resp_1", ""),
        ("GET", "/v1/responses/resp_1/cancel", ""),
        ("GET", "/v1/responses/resp_1/input_items", ""),
        ("GET", "/v1/responses", ""),
        ("POST", "/v1/responses", ""),
    ],
)
def test_background_response_is_found_by_its_id(method: str, path: str, id_: str):
    assert background_response_id(method, path) == id_


@pytest.mark.parametrize(
    ("path", "headers", "provider"),
    [
        ("/v1/messages", {}, "anthropic"),
        ("/v1/messages/batches", {"authorization": "Bearer x"}, "anthropic"),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("/v1/models", {"anthropic-beta": "x"}, "anthropic"),
        ("/v1/models", {"x-api-key": "k"}, "anthropic"),
        ("/api/hello", {"user-agent": "claude-code/2.1"}, "anthropic"),
        ("/v1/models", {"authorization": "Bearer x"}, "openai"),
        ("/v1/chat/completions", {}, "openai"),
        ("/v1/responses", {}, "openai"),
        ("/v1/responses", {"chatgpt-account-id": "a"}, "chatgpt"),
        ("/v1beta/models", {}, "gemini"),
        ("/upload/v1beta/files", {}, "gemini"),
        ("/upload/v1/files", {"x-goog-upload-command": "start"}, "gemini"),
        ("/v1/models", {"x-goog-api-key": "k"}, "gemini"),
        ("/v1/models/gemini-3-pro:generateContent", {"authorization": "Bearer b"}, "gemini"),
    ],
)
def test_provider_is_found_by_path_or_headers(path: str, headers: dict[str, str], provider: str):
    assert provider_of(path, headers) == provider


def test_address_and_path_are_joined_without_repeating_the_version():
    assert UPSTREAMS.address("anthropic", "/v1/messages?beta=true") == (
        "https://a.example/v1/messages?beta=true"
    )
    assert UPSTREAMS.address("openai", "/v1/models") == "https://o.example/v1/models"
    assert UPSTREAMS.address("openai", "/models") == "https://o.example/v1/models"
    assert UPSTREAMS.address("chatgpt", "/v1/responses") == "https://c.example/codex/responses"
    assert UPSTREAMS.address("gemini", "/v1beta/x") == "https://g.example/api/v1beta/x"


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/v1/messages", "/v1/messages"),
        ("/v1//messages", "/v1/messages"),
        ("//v1/messages/", "/v1/messages"),
        ("/v1/./x/../messages", "/v1/messages"),
        ("/v1/%6dessages", "/v1/messages"),
        ("/v1%2Fmessages", "/v1/messages"),
        ("/V1/Messages/Count_Tokens", "/v1/messages/count_tokens"),
        ("/v1/chat/completions;a=b", "/v1/chat/completions"),
        ("/v1beta/models/Tuned-M%3AgenerateContent", "/v1beta/models/Tuned-M:generateContent"),
        ("/v1/Files/file-A", "/v1/Files/file-A"),
        ("", "/"),
    ],
)
def test_path_is_normalized(path: str, plain: str):
    assert normalize_path(path) == plain


@pytest.mark.parametrize(
    ("method", "path", "costs"),
    [
        ("POST", "/v1/messages/batches", True),
        ("POST", "/v1/batches", True),
        ("POST", "/v1/completions", True),
        ("POST", "/v1/embeddings", True),
        ("POST", "/v1/images/generations", True),
        ("POST", "/v1/responses/compact", True),
        ("POST", "/v1beta/models/gemini-embedding-2:embedContent", True),
        ("POST", "/v2/whatever/is/new", True),
        ("POST", "/v1/messages/count_tokens", False),
        ("POST", "/v1/responses/input_tokens", False),
        ("POST", "/v1beta/models/gemini-3-pro:countTokens", False),
        ("POST", "/v1/messages/batches/b_1/cancel", False),
        ("POST", "/v1/files", False),
        ("POST", "/v1/filesystem", True),
        ("POST", "/v1/moderations", False),
        ("POST", "/api/event_logging/batch", False),
        ("POST", "/api/paas/v4/chat/completions", True),
        ("GET", "/v1/messages/batches", False),
        ("DELETE", "/v1/responses/resp_1", False),
    ],
)
def test_post_requests_may_cost_unless_known_to_be_free(method: str, path: str, costs: bool):
    assert may_cost(method, path) is costs


BARE = Upstreams("http://a.example", "http://o.example/v1", "http://g.example", "http://c.example")


@pytest.mark.parametrize(
    "target",
    [
        "@evil.example/latest/meta-data",
        ":81/v1/models",
        ".evil.example/v1/models",
        "1/v1/models",
        "//evil.example/v1/models",
        "/\\evil.example/v1/models",
        "\\\\evil.example/v1/models",
        "http://evil.example/v1/messages",
        "*",
        "",
        "?key=x",
        "/v1/models\r\nhost: evil.example",
        "/v1/models\t",
        "/v1/mod\u00e9les",
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "chatgpt", "gemini"])
def test_invalid_path_has_no_address(target: str, provider: Provider):
    with pytest.raises(InvalidInput):
        BARE.address(provider, target)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "chatgpt", "gemini"])
@given(target=st.text("/v1@:.\\?#[]ae%*", max_size=12).map(lambda end: f"/v1{end}"))
def test_no_path_changes_the_host(provider: Provider, target: str):
    try:
        address = BARE.address(provider, target)
    except InvalidInput:
        return
    host = {"anthropic": "a", "openai": "o", "chatgpt": "c", "gemini": "g"}[provider]
    assert urlsplit(address).netloc == f"{host}.example"
    assert URL(address, encoded=True).raw_authority == f"{host}.example"


@pytest.mark.parametrize(
    ("target", "headers", "is_meant"),
    [
        ("/docs", [], False),
        ("/ready?x=1", [(b"user-agent", b"curl/8"), (b"accept", b"*/*")], False),
        ("/.well-known/oauth-protected-resource/mcp", [], False),
        ("/api/stats", [(b"x-lore-key", b"lore_1_s")], False),
        ("/docs", [(b"authorization", b"Bearer x")], True),
        ("/docs", [(b"X-Api-Key", b"x")], True),
        ("/docs", [(b"x-goog-api-key", b"x")], True),
        ("/docs", [(b"api-key", b"x")], True),
        ("/docs", [(b"chatgpt-account-id", b"x")], True),
        ("/docs", [(b"openai-organization", b"x")], True),
        ("/docs", [(b"user-agent", b"claude-cli/2.1")], True),
        ("/docs?key=x", [], True),
        ("/v1", [], True),
        ("/v1/any/thing", [], True),
        ("//V1/./models", [], True),
        ("/v1beta/models", [], True),
        ("/upload/v1beta/files", [], True),
        ("/v1alpha/x", [], True),
        ("/v2/whatever/is/new", [], True),
        ("/openai/deployments/x", [], True),
        ("/anthropic/v1/messages", [], True),
        ("/models", [], True),
        ("/chat/completions", [], True),
        ("/responses/resp_1", [], True),
        ("/api/hello", [], True),
        ("/api/event_logging/batch", [], True),
    ],
)
def test_a_request_is_for_a_provider_by_its_path_key_or_client(
    target: str, headers: list[tuple[bytes, bytes]], is_meant: bool
):
    path, _, query = target.partition("?")
    scope = {
        "method": "GET", "raw_path": path.encode(), "query_string": query.encode(),
        "headers": headers,
    }  # fmt: skip
    assert RequestHead.of(scope).is_for_provider is is_meant


@pytest.mark.parametrize(
    ("url", "is_openai"),
    [
        ("https://api.openai.com", True),
        ("https://api.openai.com/v1/", True),
        ("http://127.0.0.1:11434/v1", False),
        ("https://api.openai.com.example/v1", False),
    ],
)
def test_only_the_host_of_openai_is_openai(url: str, is_openai: bool):
    assert Upstreams("http://a.example", url, "http://g.example").is_openai is is_openai


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/v1/embeddings", "/v1/embeddings"),
        ("/v1/messages/batches", "/v1/messages/batches"),
        ("/v1/images/generations/more", "/v1/images/generations"),
        ("/v1beta/cachedContents", "/v1beta/cachedcontents"),
        ("/v1beta/models/gemini-2.5-pro:predict", "/v1beta/models/other"),
        ("/v1/threads/thread_abc123/runs", "/v1/threads/other"),
        ("/v1/unknown/a-plain-token-without-form-1234", "/v1/other"),
        ("/sk-ant-api03-secret", "/other"),
        ("/v1/short", "/v1/other"),
        ("/", "/other"),
        ("", "/other"),
    ],
)
def test_path_label_has_only_known_words(path: str, label: str):
    assert path_label(path) == label

"""The gateway beside the other doors: which requests are its own, and which it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.gateway_server import HELLO, Proxied, proxied
from tests.http_api.live_server import serving
from tests.upstream import Upstream


def test_probe_of_claude_code_is_answered_locally(gateway: Proxied, up: Upstream):
    came = len(up.requests)
    got = gateway.ask("/", method="HEAD")
    assert (got.status, got.body) == (200, b"")
    assert len(up.requests) == came


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages", "/v1/realtime"])
def test_websocket_upgrade_is_refused(gateway: Proxied, up: Upstream, path: str):
    came = len(up.requests)
    got = gateway.ask(
        path,
        headers={"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13"},
    )
    assert got.status == 426
    assert len(up.requests) == came


@pytest.mark.parametrize(
    "path",
    ["/health", "/login", "/api/v1/stats", "/api/v1/nothing", "/api/v1", "/metrics", "/", "/login/",
     "/health/x", "/status/"],
)  # fmt: skip
def test_server_paths_are_not_forwarded(gateway: Proxied, up: Upstream, path: str):
    came = len(up.requests)
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    assert gateway.ask(path, headers=headers).status in (200, 401)
    assert len(up.requests) == came


@pytest.mark.parametrize(
    "path", ["/v1/models", "/api/hello", "/api/event_logging/batch", "/v1", "/v1beta/models", "/x"]
)
def test_other_paths_are_forwarded(gateway: Proxied, up: Upstream, path: str):
    gateway.ask(path, headers={"x-api-key": "k"})
    assert up.requests[-1].target == path


def test_a_path_that_nobody_has_is_not_found(tmp_path: Path, up: Upstream):
    with proxied(tmp_path, up.url, openai_url="https://api.openai.com") as gateway:
        for method in ("GET", "POST"):
            got = gateway.ask("/docs", method=method)
            assert got.status == 404
            assert got.header("content-type") == "application/problem+json"
            assert got.json["detail"] == "Neither Lore nor a provider has the path '/docs'."


def test_without_a_key_any_path_of_another_server_is_forwarded(gateway: Proxied, up: Upstream):
    gateway.ask("/docs")
    assert up.requests[-1].target == "/docs"


def test_browser_requests_are_not_forwarded(gateway: Proxied, up: Upstream):
    came = len(up.requests)
    for path in ("/favicon.ico", "/v1/models", "/robots.txt"):
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
        assert gateway.ask(path, headers=headers).status == 401
    assert len(up.requests) == came


def test_requests_of_node_fetch_are_forwarded(gateway: Proxied, up: Upstream):
    headers = {"sec-fetch-mode": "cors", "accept-language": "*", "x-goog-api-key": "k"}
    gateway.ask("/v1beta/models", headers=headers)
    assert up.requests[-1].target == "/v1beta/models"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ],
)
def test_host_and_origin_are_checked(gateway: Proxied, up: Upstream, name: str, value: str):
    came = len(up.requests)
    with gateway.connect() as client:
        usual = "" if name == "host" else "host: localhost\r\n"
        client.sendall(
            f"GET /v1/models HTTP/1.1\r\n{usual}{name}: {value}\r\nx-api-key: k\r\n\r\n".encode()
        )
        assert client.recv(100).startswith(b"HTTP/1.1 403")
    assert len(up.requests) == came


@pytest.mark.parametrize(
    "headers",
    [
        [("authorization", "Bearer lore_local_abc")],
        [("authorization", "lore_local_abc")],
        [("x-api-key", "lore_0123456789_secret")],
        [("x-api-key", "lore_0123456789_secret"), ("x-api-key", "sk-1")],
        [("x-goog-api-key", "lore_0123456789_secret")],
        [("api-key", "lore_0123456789_secret")],
        [("ocp-apim-subscription-key", "lore_0123456789_secret")],
    ],
)
def test_lore_key_is_not_forwarded_as_a_provider_key(
    gateway: Proxied, up: Upstream, headers: list[tuple[str, str]]
):
    came = len(up.requests)
    assert gateway.ask("/API/v1/stats", headers=headers).status == 401
    assert len(up.requests) == came


@pytest.mark.parametrize("query", ["key=lore_1_s", "alt=sse&KEY=lore_1_s", "a=1&k%65y=%6Core_1_s"])
def test_lore_key_is_not_forwarded_as_a_parameter(gateway: Proxied, up: Upstream, query: str):
    came = len(up.requests)
    assert gateway.ask(f"/v1beta/models/g:generateContent?{query}", b"{}").status == 401
    assert len(up.requests) == came


def test_text_that_starts_like_a_lore_key_is_forwarded(gateway: Proxied, up: Upstream):
    gateway.ask("/v1/models?q=lore_x", headers={"x-title": "lore_of_the_rings"})
    assert up.requests[-1].target == "/v1/models?q=lore_x"


@pytest.mark.parametrize("target", ["@127.0.0.1:{}/x", "http://127.0.0.1:{}/x", "//x:{}/", "*"])
def test_target_that_is_not_a_path_is_refused(gateway: Proxied, up: Upstream, target: str):
    came, other = len(up.requests), up.url.rpartition(":")[2]
    head = f"GET {target.format(other)} HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\n\r\n"
    with gateway.connect() as client:
        client.sendall(head.encode())
        assert client.recv(100).startswith(b"HTTP/1.1 40")
    assert len(up.requests) == came


def test_lore_headers_and_cookies_are_not_forwarded(gateway: Proxied, up: Upstream):
    cookie = f"{gateway.served.logins.cookie}=x; theirs=1"
    headers = {"x-lore-key": gateway.served.key, "x-lore-project": "/code/shop", "cookie": cookie}
    gateway.ask("/v1/messages", HELLO, headers)
    came = dict(up.requests[-1].headers)
    assert not [name for name in came if name.startswith("x-lore-")]
    assert came["cookie"] == "theirs=1"
    assert gateway.served.key not in repr(up.requests[-1])


def test_credentials_are_not_logged(gateway: Proxied, caplog, capfd):
    secret = "sk-" + "z" * 24
    gateway.ask("/v1/messages", HELLO, {"x-api-key": secret})
    gateway.ask(f"/v1beta/models/g:generateContent?key={secret}", b"{}")
    said = capfd.readouterr()
    logged = " ".join(str(vars(record)) for record in caplog.records)
    assert secret not in said.out + said.err + logged


def test_paths_are_closed_without_a_gateway(tmp_path: Path):
    with serving(tmp_path) as served:
        assert served.ask("POST", "/v1/messages", body=b"{}").status == 401
        assert served.post("/v1/messages", {}).status == 404

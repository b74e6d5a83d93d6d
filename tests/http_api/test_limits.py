from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from lore.http.request_limits import (
    BURST_S,
    MAX_HEAD_BYTES,
    MAX_JSON_DEPTH,
    Limits,
    RateLimiter,
    parse_json,
)
from tests.http_api.live_server import Served, serving

SMALL = Limits(
    body_bytes=1_000, requests_per_minute=0, anonymous_per_minute=0, head_s=0.5, body_s=0.5
)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("home"), limits=SMALL) as served:
        yield served


class Ticks:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_caller_has_a_burst_and_then_what_comes_back_with_time():
    ticks = Ticks()
    rates = RateLimiter(60, ticks)
    assert [rates.wait_s("a") for _ in range(int(BURST_S))] == [0.0] * int(BURST_S)
    assert rates.wait_s("a") == pytest.approx(1.0)
    assert rates.wait_s("b") == 0.0
    ticks.now_s += 1.0
    assert rates.wait_s("a") == 0.0
    assert rates.wait_s("a") > 0


def test_no_limit_is_no_limit():
    rates = RateLimiter(0)
    assert not any(rates.wait_s("a") for _ in range(10_000))


def test_callers_without_number_are_not_all_remembered():
    rates = RateLimiter(60, Ticks())
    for caller in range(5_000):
        rates.wait_s(str(caller))
    assert len(rates._left) <= 1_000


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3)), max_size=60))
def test_nobody_sends_more_than_burst_and_rate_allow(steps: list[tuple[str, float]]):
    ticks = Ticks()
    rates = RateLimiter(60, ticks)
    sent = {"a": 0, "b": 0}
    for caller, passed_s in steps:
        ticks.now_s += passed_s
        sent[caller] += rates.wait_s(caller) == 0.0
    assert all(count <= BURST_S + ticks.now_s + 1e-6 for count in sent.values())


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_json_may_be_nested_so_deep_and_no_deeper():
    assert parse_json(nested(MAX_JSON_DEPTH)) is not None
    for levels in (MAX_JSON_DEPTH + 1, 1_000):
        with pytest.raises(HTTPException) as refused:
            parse_json(nested(levels))
        assert refused.value.status_code == 422


@pytest.mark.parametrize(
    "body",
    [b"{", b"nul", b'{"a": NaN}', b'{"a": Infinity}', b'"\\ud800"', b"\xff", b"{'a': 1}", b"[1,]",
     nested(100_000), b"\x00"],
)  # fmt: skip
def test_what_is_no_json_is_a_bad_request(body: bytes):
    with pytest.raises(HTTPException) as refused:
        parse_json(body)
    assert refused.value.status_code == 400


def test_no_body_is_an_empty_object():
    assert parse_json(b"") == parse_json(b" \n") == {}


def headers_of(served: Served, **more: str) -> dict[str, str]:
    return {"x-lore-key": served.key, "content-type": "application/json", **more}


def test_a_body_that_is_announced_too_large_is_refused_unread(small: Served):
    headers = headers_of(small) | {"content-length": "99999999999999999999999"}
    assert small.ask("POST", "/api/v1/retrieve", headers=headers).status in (400, 413)
    headers = headers_of(small) | {"content-length": "1001"}
    reply = small.ask("POST", "/api/v1/retrieve", headers=headers)
    assert (reply.status, reply.headers["connection"]) == (413, "close")


def test_a_body_that_turns_out_too_large_is_refused(small: Served):
    with socket.create_connection((small.host, small.port), 10) as client:
        client.sendall(
            b"POST /api/v1/retrieve HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
            b"content-type: application/json\r\nx-lore-key: " + small.key.encode() + b"\r\n\r\n"
        )
        for _ in range(4):
            client.sendall(b"190\r\n" + b" " * 400 + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_who_writes_all_of_a_body_first_reads_that_it_is_too_large(small: Served):
    headers = {"authorization": f"Bearer {small.key}", "content-type": "application/json"}
    reply = small.ask("POST", "/api/v1/retrieve", headers=headers, body=b"x" * 20_000_000)
    assert reply.status == 413
    assert "larger than" in reply.json["detail"]
    pieces = iter([b"x" * 1_000_000] * 9)
    chunked = {**headers, "transfer-encoding": "chunked"}
    with contextlib.closing(HTTPConnection(small.host, small.port, timeout=30)) as connection:
        connection.request("POST", "/api/v1/retrieve", pieces, chunked, encode_chunked=True)
        assert connection.getresponse().status == 413


def test_headers_that_are_too_large_are_refused(small: Served):
    headers = headers_of(small) | {"x-padding": "x" * MAX_HEAD_BYTES}
    assert small.ask("GET", "/api/v1/stats", headers=headers).status in (400, 431)
    path = "/api/v1/stats?" + "x" * MAX_HEAD_BYTES
    assert small.ask("GET", path, headers=headers_of(small)).status in (400, 431)


def read_all(client: socket.socket) -> bytes:
    """Return what comes until the server ends the connection, in whichever way."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(1_000):
            received += piece
    return received


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nhost: loc"])
def test_who_does_not_finish_a_head_is_cut_off(small: Served, sent: bytes):
    with socket.create_connection((small.host, small.port), 30) as client:
        client.sendall(sent)
        assert read_all(client) == b""
    assert small.ask("GET", "/health").status == 200


def test_who_does_not_finish_a_second_head_is_cut_off(small: Served):
    with socket.create_connection((small.host, small.port), 30) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /health HTTP/1.1\r\nhost: l")
        assert b"HTTP/1.1" not in read_all(client)


def test_who_does_not_finish_a_body_is_answered_and_cut_off(small: Served):
    with socket.create_connection((small.host, small.port), 30) as client:
        client.sendall(
            b"POST /api/v1/retrieve HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n"
            b"content-type: application/json\r\nx-lore-key: " + small.key.encode() + b"\r\n\r\n{"
        )
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_slow_clients_do_not_hold_up_others(small: Served):
    slow = [socket.create_connection((small.host, small.port), 10) for _ in range(50)]
    try:
        for client in slow:
            client.sendall(b"POST /api/v1/retrieve HTTP/1.1\r\n")
        assert small.get("/api/v1/stats").status == 200
    finally:
        for client in slow:
            client.close()


def test_too_many_requests_of_one_key_have_to_wait_and_another_key_does_not(tmp_path: Path):
    with serving(tmp_path, limits=Limits(requests_per_minute=60)) as served:
        replies = [served.get("/api/v1/stats") for _ in range(int(BURST_S) + 20)]
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
        other, _ = served.memory.access.create_key("other", scopes=["read"])
        assert served.ask("GET", "/api/v1/stats", headers={"x-lore-key": other}).status == 200
        assert served.ask("GET", "/health").status == 200


def test_an_address_that_guesses_keys_has_to_wait_and_one_that_has_a_key_does_not(tmp_path: Path):
    with serving(tmp_path, limits=Limits(anonymous_per_minute=60)) as served:
        tried = {served.ask("GET", "/api/v1/stats").status for _ in range(30)}
        assert tried == {401, 429}
        assert served.get("/api/v1/stats").status == 200

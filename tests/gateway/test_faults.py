"""What goes wrong between a client, the gateway and upstream, and what each of them sees of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gateway.faulty_upstream import HEAD, LAST, Faulty, Peer, chunk, faulty
from tests.gateway.gateway_server import HELLO, Proxied, proxied
from tests.upstream import ModelError, ModelReply, Upstream
from tests.waiting import eventually

LEFT_S = 5.0
"""Upstream is to be let go within a second; machines that run tests do much else."""

EVENT = b"event: ping\ndata: {}\n\n"
BODY = json.dumps(HELLO).encode()
REQUEST = (
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\n"
    b"content-length: " + str(len(BODY)).encode() + b"\r\n\r\n" + BODY
)
ERROR_OF = {
    "/v1/messages": lambda tree: (tree["type"], tree["error"]["type"]) == ("error", "api_error"),
    "/v1/chat/completions": lambda tree: tree["error"]["type"] == "server_error",
    "/v1/responses": lambda tree: tree["error"]["type"] == "server_error",
    "/v1beta/models/g:generateContent": lambda tree: tree["error"]["code"] == 502,
}


@contextmanager
def before(behave: Callable[[Peer], None], home: Path) -> Iterator[tuple[Proxied, Faulty]]:
    """Serve a gateway before a faulty upstream."""
    with faulty(behave) as up, proxied(home, up.url) as gateway:
        yield gateway, up


@pytest.mark.parametrize("path", ERROR_OF)
def test_unreachable_upstream_is_an_error_in_the_providers_format(tmp_path: Path, path: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with proxied(tmp_path, f"http://127.0.0.1:{port}") as gateway:
        got = gateway.ask(path, HELLO)
    assert got.status == 502
    assert ERROR_OF[path](got.json)


def test_unknown_host_name_is_an_unreachable_upstream(tmp_path: Path):
    with proxied(tmp_path, "http://no-such-host.invalid") as gateway:
        assert gateway.ask("/v1/messages", HELLO).status == 502


def test_refused_connection_is_retried(tmp_path: Path):
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        served = threading.Event()

        def listen_late() -> None:
            reserved.listen()
            connection, _ = reserved.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                served.set()

        with proxied(tmp_path, f"http://127.0.0.1:{port}") as gateway:
            threading.Timer(0.05, listen_late).start()
            got = gateway.ask("/v1/messages", HELLO)
    assert (got.status, got.body) == (200, b"ok")


def test_request_that_upstream_received_is_not_retried(tmp_path: Path):
    def hang_up(peer: Peer) -> None:
        peer.reset()

    with before(hang_up, tmp_path) as (gateway, up):
        assert gateway.ask("/v1/messages", HELLO).status == 502
        assert len(up.requests) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff\xfe garbage \r\n\r\n",
        b"HTTP/9.9 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx-long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"",
    ],
)
def test_malformed_response_is_an_error(tmp_path: Path, garbage: bytes):
    with before(lambda peer: peer.send(garbage), tmp_path) as (gateway, _):
        got = gateway.ask("/v1/messages", HELLO)
    assert got.status == 502
    assert got.json["error"]["type"] == "api_error"


def test_long_upstream_header_is_forwarded(tmp_path: Path):
    def answer(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-long: " + b"x" * 30_000 + b"\r\n\r\n")

    with before(answer, tmp_path) as (gateway, _):
        assert len(gateway.ask("/v1/messages", HELLO).header("x-long")) == 30_000


def test_too_long_request_head_is_refused(gateway: Proxied, up: Upstream):
    came = len(up.requests)
    got = gateway.ask("/v1/messages", HELLO, {"x-long": "x" * 40_000})
    assert got.status in (400, 431)
    assert len(up.requests) == came


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503, 529])
def test_provider_errors_are_forwarded_with_their_headers(
    gateway: Proxied, up: Upstream, status: int
):
    told = {
        "retry-after": "7",
        "anthropic-ratelimit-requests-remaining": "0",
        "x-should-retry": "true",
    }
    up.reply_with(ModelError(status, "some_error", "It is so.", told))
    came = len(up.requests)
    got = gateway.ask("/v1/messages", HELLO)
    assert got.status == status
    assert {name: got.header(name) for name in told} == told
    assert got.json["error"] == {"type": "some_error", "message": "It is so."}
    assert len(up.requests) == came + 1


@pytest.mark.parametrize("ending", ["reset", "close", "half_close"])
def test_aborted_upstream_stream_is_aborted_for_the_client(tmp_path: Path, ending: str):
    def break_off(peer: Peer) -> None:
        peer.send(HEAD + chunk(EVENT))
        sent.wait(30)
        if ending == "reset":
            peer.reset()
        elif ending == "half_close":
            peer.half_close()
            peer.wait_until_left()

    sent = threading.Event()
    with before(break_off, tmp_path) as (gateway, _):
        connection = http.client.HTTPConnection("127.0.0.1", gateway.served.port, timeout=30)
        connection.request("POST", "/v1/messages", BODY)
        answer = connection.getresponse()
        assert answer.read(len(EVENT)) == EVENT
        sent.set()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
        connection.close()


def test_truncated_body_is_aborted_for_the_client(tmp_path: Path):
    def announce(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this")

    with before(announce, tmp_path) as (gateway, _), pytest.raises(http.client.IncompleteRead):
        gateway.ask("/v1/messages", HELLO)


def test_response_that_ends_with_its_connection_is_complete(tmp_path: Path):
    def answer(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + EVENT)
        peer.half_close()
        peer.wait_until_left()

    with before(answer, tmp_path) as (gateway, _):
        assert gateway.ask("/v1/messages", HELLO).body == EVENT


def test_response_waits_for_the_upstream_status(tmp_path: Path):
    release = threading.Event()

    def wait_first(peer: Peer) -> None:
        release.wait(30)
        peer.send(b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n")

    with before(wait_first, tmp_path) as (gateway, up), gateway.connect() as client:
        client.sendall(REQUEST)
        eventually(lambda: up.requests)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)
        client.setblocking(True)
        release.set()
        assert client.recv(20).startswith(b"HTTP/1.1 429")


def test_each_event_is_forwarded_at_once(tmp_path: Path):
    read = [threading.Event() for _ in range(5)]

    def one_by_one(peer: Peer) -> None:
        peer.send(HEAD)
        for number, gone in enumerate(read):
            peer.send(chunk(b"data: %d\n\n" % number))
            assert gone.wait(30)
        peer.send(LAST)

    with before(one_by_one, tmp_path) as (gateway, _):
        connection = http.client.HTTPConnection("127.0.0.1", gateway.served.port, timeout=30)
        connection.request("POST", "/v1/messages", BODY)
        answer = connection.getresponse()
        for number, gone in enumerate(read):
            assert answer.read(9) == b"data: %d\n\n" % number
            gone.set()
        assert answer.read() == b""
        connection.close()


@pytest.mark.parametrize("when", ["before the status", "before the first event", "in the stream"])
def test_upstream_request_is_cancelled_when_the_client_leaves(tmp_path: Path, when: str):
    ready, left = threading.Event(), threading.Event()

    def talk(peer: Peer) -> None:
        if when != "before the status":
            peer.send(HEAD)
        if when == "in the stream":
            peer.send(chunk(EVENT))
        ready.set()
        if peer.wait_until_left():
            left.set()

    with before(talk, tmp_path) as (gateway, _):
        client = gateway.connect()
        client.sendall(REQUEST)
        assert ready.wait(30)
        if when != "before the status":
            assert client.recv(9) == b"HTTP/1.1 "
        client.close()
        assert left.wait(LEFT_S)


def test_upstream_request_is_cancelled_when_the_client_resets(tmp_path: Path):
    ready, left = threading.Event(), threading.Event()

    def talk(peer: Peer) -> None:
        ready.set()
        if peer.wait_until_left():
            left.set()

    with before(talk, tmp_path) as (gateway, _):
        client = gateway.connect()
        client.sendall(REQUEST)
        assert ready.wait(30)
        Peer(client, b"").reset()
        assert left.wait(LEFT_S)


def test_client_that_leaves_within_its_body_reaches_no_upstream(gateway: Proxied, up: Upstream):
    came = len(up.requests)
    with gateway.connect() as client:
        client.sendall(REQUEST[:-10])
    with gateway.connect() as client:
        client.sendall(REQUEST.replace(b"/v1/messages", b"/v1/anything")[:-10])
    assert gateway.ask("/v1/models", headers={"x-api-key": "k"}).status == 200
    assert [asked.path for asked in up.requests[came:] if asked.body] == []


def test_server_stop_ends_open_streams(tmp_path: Path):
    ready, left = threading.Event(), threading.Event()

    def talk(peer: Peer) -> None:
        peer.send(HEAD + chunk(EVENT))
        ready.set()
        if peer.wait_until_left():
            left.set()

    with contextlib.ExitStack() as stack:
        up = stack.enter_context(faulty(talk))
        with proxied(tmp_path, up.url) as gateway:
            client = stack.enter_context(gateway.connect())
            client.sendall(REQUEST)
            assert ready.wait(30)
        assert left.wait(LEFT_S)
        received = b""
        while more := client.recv(65_536):
            received += more
        assert EVENT in received
        assert not received.endswith(LAST)


def test_upstream_connection_is_reused(gateway: Proxied, up: Upstream):
    for _ in range(5):
        gateway.ask("/v1/messages", HELLO)
    assert len({asked.connection for asked in up.requests[-5:]}) == 1


def test_slow_response_is_awaited(gateway: Proxied, up: Upstream):
    up.reply_with(ModelReply("At last.", delay_s=0.5, pause_s=0.05))
    assert b"At last." in gateway.ask("/v1/messages", {**HELLO, "stream": True}).body


@pytest.mark.parametrize("status", ["101 Switching Protocols", "099 Odd", "600 Odd", "999 Odd"])
def test_informational_status_is_an_error(tmp_path, status):
    def behave(peer: Peer) -> None:
        peer.send(f"HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}".encode())

    with faulty(behave) as up, proxied(tmp_path, up.url) as gateway:
        got = gateway.ask("/v1/messages", HELLO)
    assert got.status == 502
    assert got.json["error"]["type"] == "api_error"

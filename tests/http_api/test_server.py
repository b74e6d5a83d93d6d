"""Many connections: idle ones are evicted, and all requests are answered alike."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lore.errors import DaemonError
from lore.http.request_limits import Limits
from lore.http.server import bind, raise_file_limit
from tests.http_api.live_server import Served, serving

FEW = Limits(requests_per_minute=0, anonymous_per_minute=0, connections=20, requests_at_once=2)


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, limits=FEW) as served:
        yield served


@contextlib.contextmanager
def strangers(served: Served, count: int) -> Iterator[list[socket.socket]]:
    """Connect so many times and say nothing."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((served.host, served.port), 30))
            for _ in range(count)
        ]


def is_ended(client: socket.socket) -> bool:
    client.settimeout(30)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_that_say_nothing_do_not_shut_the_door(few: Served):
    with strangers(few, 100) as idle:
        for _ in range(5):
            assert few.get("/api/v1/stats").status == 200
        assert all(is_ended(client) for client in idle[:70])


def test_a_connection_that_has_asked_is_spared(few: Served):
    known = http.client.HTTPConnection(few.host, few.port, timeout=30)
    known.request("GET", "/health")
    known.getresponse().read()
    with strangers(few, 100):
        known.request("GET", "/health")  # http.client does not connect anew by itself
        assert known.getresponse().status == 200
    known.close()


@contextlib.contextmanager
def held_up(served: Served) -> Iterator[None]:
    """Let every write wait meanwhile."""
    begun, over = threading.Event(), threading.Event()

    def hold(_db: object) -> None:
        begun.set()
        over.wait(60)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(served.memory.database.write, hold)
        try:
            assert begun.wait(30)
            yield
        finally:
            over.set()


def push(number: int) -> dict[str, object]:
    return {"session": f"s{number}", "messages": [{"role": "user", "text": "hello"}]}


def test_more_requests_at_once_than_there_is_room_for_are_sent_away_for_a_moment(few: Served):
    with ThreadPoolExecutor(8) as pool:
        with held_up(few):
            sent = [pool.submit(few.post, "/api/v1/capture", push(n)) for n in range(8)]
            while sum(one.done() for one in sent) < 6:
                pass
        replies = [one.result() for one in sent]
    refused = [reply for reply in replies if reply.status == 503]
    assert len(refused) == 6
    assert {reply.headers["content-type"] for reply in refused} == {"application/problem+json"}
    assert few.post("/api/v1/capture", push(9)).status == 200


def test_a_request_that_is_cut_off_by_the_end_of_the_server_is_told_so(tmp_path: Path):
    replies: list[bytes] = []

    def ask(served: Served, sent: threading.Event) -> None:
        body = json.dumps(push(1)).encode()
        with socket.create_connection((served.host, served.port), 30) as client:
            client.sendall(
                b"POST /api/v1/capture HTTP/1.1\r\nhost: localhost\r\nx-lore-key: "
                + served.key.encode()
                + b"\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            sent.set()
            replies.append(client.recv(10_000))
        stack.close()  # or the memory would wait for the write that is held up

    with contextlib.ExitStack() as stack:
        sent = threading.Event()
        thread = threading.Thread(target=lambda: ask(served, sent))
        with serving(tmp_path) as served:
            stack.enter_context(held_up(served))
            thread.start()
            assert sent.wait(30)
            while served.get("/health").status != 200:
                pass
        thread.join(30)
    [reply] = replies
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b"application/problem+json" in reply


def test_a_process_may_have_as_many_files_as_its_server_needs():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = raise_file_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == resource.RLIM_INFINITY or soft >= allowed
    assert hard == before[1]
    assert raise_file_limit() == allowed


def test_a_port_that_is_taken_gives_way_to_another():
    first, free = bind("127.0.0.1", 0)
    with first:
        assert free
        port = first.getsockname()[1]
        second, free = bind("127.0.0.1", port)
        with second:
            assert not free
            assert second.getsockname()[1] not in (0, port)


@pytest.mark.parametrize("host", ["no such host", "a" * 300, "203.0.113.7"])
def test_what_is_no_address_of_this_machine_is_refused_with_the_setting(host: str):
    with pytest.raises(DaemonError) as refused:
        bind(host, 0)
    assert "server.host" in refused.value.hint


def test_what_is_no_http_is_answered_as_a_problem(few: Served):
    with socket.create_connection((few.host, few.port), 10) as client:
        client.sendall(b"no http\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["status"] == 400

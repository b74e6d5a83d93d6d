from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.proxy.address import Address
from lore.proxy.daemon_client import (
    DaemonCall,
    DaemonUnreachable,
    ResponseLost,
    ResponseTimeout,
    ResponseTruncated,
    percent_encode,
)

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@contextmanager
def answering(answer: bytes | None):
    """Listen for one request and answer with these bytes; None never answers."""
    listening = socket.create_server(("127.0.0.1", 0))
    asked: list[bytes] = []
    done = threading.Event()

    def serve():
        line, _ = listening.accept()
        with line:
            asked.append(line.recv(65_536))
            if answer is None:
                done.wait(10)
            else:
                line.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield Address("127.0.0.1", listening.getsockname()[1], "key"), asked
    finally:
        done.set()
        thread.join(10)
        listening.close()


def post(address, *, within_s=10.0, headers=None):
    return DaemonCall().post(address, "/mcp", b'{"a": 1}', headers or {}, within_s)


def test_a_request_has_key_length_and_its_own_headers():
    with answering(OK) as (address, asked):
        assert post(address, headers={"x-lore-project": "/code/a"}) == (200, b"{}")
    head, body = asked[0].split(b"\r\n\r\n")
    assert head.startswith(b"POST /mcp HTTP/1.1\r\n")
    assert b"authorization: Bearer key" in head
    assert b"content-length: 8" in head
    assert b"x-lore-project: /code/a" in head
    assert body == b'{"a": 1}'


def test_an_answer_in_chunks_is_put_together():
    chunks = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n"
    )
    with answering(chunks) as (address, _):
        assert post(address) == (200, b"abcde")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
def test_an_answer_that_ends_too_early_is_lost(answer):
    with answering(answer) as (address, _), pytest.raises(ResponseTruncated):
        post(address)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    ],
)
def test_an_answer_that_makes_no_sense_is_lost(answer):
    with answering(answer) as (address, _), pytest.raises(ResponseLost):
        post(address)


def test_where_nobody_listens_nothing_was_sent():
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    with pytest.raises(DaemonUnreachable):
        post(Address("127.0.0.1", port, "key"))


def test_whoever_listens_where_lore_did_is_not_given_the_key(tmp_path):
    with answering(OK) as (stranger, asked):
        former = Address(stranger.host, stranger.port, "key", home=str(tmp_path))
        with pytest.raises(DaemonUnreachable):
            post(former)
    assert asked == [b""]


def test_an_answer_that_does_not_come_is_not_waited_for():
    with answering(None) as (address, _), pytest.raises((ResponseTimeout, ResponseLost)):
        post(address, within_s=0.05)


def test_who_hangs_up_does_not_wait_for_the_answer():
    call = DaemonCall()
    with answering(None) as (address, asked):
        ender = threading.Timer(0.05, call.cancel)
        ender.start()
        with pytest.raises(ResponseLost):
            call.post(address, "/mcp", b"{}", {}, 10)
        ender.join()
    assert call.is_cancelled
    assert asked


@given(st.text())
def test_any_text_can_stand_in_a_header(text):
    header = percent_encode(text.encode("utf-8", "replace").decode())
    assert header.isascii()
    assert header.isprintable()
    assert " " not in header
    assert unquote(header) == text.encode("utf-8", "replace").decode()

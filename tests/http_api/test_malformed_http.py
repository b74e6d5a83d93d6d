"""Malformed or ambiguous HTTP is rejected before any app sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lore.http.request_limits import MAX_HEAD_BYTES
from tests.http_api.raw_client import HOST, SECOND, Line, listening, read_all, statuses


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with listening() as served:
        yield served


def is_refused(line: Line, sent: bytes) -> bool:
    """Tell whether this is told to be no HTTP, in the manner of every refusal, and seen by none."""
    line.app.seen.clear()
    head, _, body = line.say(sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 "), head
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    assert json.loads(body)["code"] == "BadRequest"
    return not line.app.seen


REQUEST_LINES = [
    b"no http",
    b"GET /",
    b"GET / http/1.1",
    b"GET / HTTP/1.11",
    b"GET / HTTP/x.y",
    b"GET / RTSP/1.0",
    b"GET  / HTTP/1.1",
    b"GET /  HTTP/1.1",
    b"GET / HTTP/1.1 ",
    b"GET /a b HTTP/1.1",
    b" GET / HTTP/1.1",
    b"GET /\x00 HTTP/1.1",
    b"GET /\x01 HTTP/1.1",
    b"GET /\x7f HTTP/1.1",
    b"GET /\tx HTTP/1.1",
    b"GET /\xff HTTP/1.1",
    b"GET /?\xff HTTP/1.1",
    b"\x16\x03\x01\x02\x00\x01\x00",
]

HEADERS = [
    b"x : 1",
    b"x\t: 1",
    b": 1",
    b"x",
    b"x(y: 1",
    b"x\xe9: 1",
    b"x\x00: 1",
    b"x: a\x00b",
    b"x: a\x00",
    b"x: a\x0bb",
    b"x: a\x0cb",
    b"x: a\x0c",
    b"x: a\rb",
    b"x: a\nb",
    b"x: a\r",
    b"host: other",
]

LENGTHS = [
    b"+2",
    b"-2",
    b"0x2",
    b"2.0",
    b"a",
    b"2a",
    b"2 2",
    b"\xb2",
    b"",
    b"2\x0c",
    b"2, 3",
    b"9" * 30,
]

CODINGS = [
    b"gzip",
    b"gzip, chunked",
    b"chunked, gzip",
    b"chunked, chunked",
    b"identity",
    b"identity, chunked",
    b"chunked,",
    b",chunked",
    b"xchunked",
    b"chunked;a=b",
    b"",
    b"\x0bchunked",
    b"chunked\x0b",
    b'"chunked"',
    b"chunked\r\ntransfer-encoding: chunked",
    b"gzip\r\ntransfer-encoding: chunked",
    b"chunked\r\ntransfer-encoding: identity",
]

CHUNKS = [
    b" 2\r\nab\r\n0\r\n\r\n",
    b"2\r\nab0\r\n\r\n",
    b"2\r\nabX\r\n0\r\n\r\n",
    b"0x2\r\nab\r\n0\r\n\r\n",
    b"+2\r\nab\r\n0\r\n\r\n",
    b"-2\r\nab\r\n0\r\n\r\n",
    b"\r\nab\r\n0\r\n\r\n",
    b"g\r\nab\r\n0\r\n\r\n",
    b"2;a\nb\r\nab\r\n0\r\n\r\n",
    b'2;a="\r\n"\r\nab\r\n0\r\n\r\n',
    b"2\r\nab\r\n0\r\nx : y\r\n\r\n",
    b"2\r\nab\r\n0\r\nx\r\n\r\n",
    b"2;" + b"a" * 400_000,
    b"2\r\nab\r\n0\r\n" + b"a: b\r\n" * 80_000,
]


@pytest.mark.parametrize("first", REQUEST_LINES)
def test_a_request_line_that_is_none_is_refused(line: Line, first: bytes):
    assert is_refused(line, first + b"\r\n" + HOST + b"\r\n")


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_that_is_none_is_refused(line: Line, header: bytes):
    assert is_refused(line, b"GET / HTTP/1.1\r\n" + HOST + header + b"\r\n\r\n")


def test_a_request_that_names_no_host_is_refused(line: Line):
    assert is_refused(line, b"GET / HTTP/1.1\r\nx: y\r\n\r\n")
    assert is_refused(line, b"GET / HTTP/1.1\r\n x: y\r\n" + HOST + b"\r\n")


@pytest.mark.parametrize("length", LENGTHS)
def test_a_length_that_is_none_is_refused(line: Line, length: bytes):
    head = b"POST / HTTP/1.1\r\n" + HOST + b"content-length: " + length + b"\r\n\r\n"
    assert is_refused(line, head + b"ab")


def test_two_lengths_that_differ_are_refused(line: Line):
    lengths = b"content-length: 2\r\ncontent-length: 3\r\n\r\n"
    assert is_refused(line, b"POST / HTTP/1.1\r\n" + HOST + lengths + b"abc")


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_is_coded_in_any_way_but_in_chunks_is_refused(line: Line, coding: bytes):
    head = b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: " + coding + b"\r\n\r\n"
    assert is_refused(line, head + b"2\r\nab\r\n0\r\n\r\n")


@pytest.mark.parametrize("chunks", CHUNKS, ids=lambda chunks: repr(chunks[:30]))
def test_chunks_that_are_none_are_refused(line: Line, chunks: bytes):
    head = b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n"
    assert is_refused(line, head + chunks)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * MAX_HEAD_BYTES,
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x" * MAX_HEAD_BYTES,
        b"GET /" + b"a" * MAX_HEAD_BYTES,
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"a: b\r\n" * 8_000,
        b"\r\n" * MAX_HEAD_BYTES,
    ],
    ids=lambda sent: repr(sent[:60]),
)
def test_a_head_that_does_not_end_is_refused(line: Line, sent: bytes):
    assert is_refused(line, sent)


def test_a_second_head_that_does_not_end_is_refused_after_the_first_answer(line: Line):
    with line.connect() as client:
        client.sendall(SECOND)
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /" + b"a" * MAX_HEAD_BYTES)
        assert statuses(read_all(client)) == [400]

"""HTTP connections: how requests are read and responses written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http_api.raw_client import (
    HOST,
    SECOND,
    Line,
    Seen,
    listening,
    read_all,
    read_until,
    statuses,
)
from tests.waiting import eventually


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with listening() as served:
        yield served


def test_who_begins_a_head_behind_a_body_and_does_not_end_it_is_cut_off(line: Line):
    told = line.say(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 2\r\n\r\nabGET / HT")
    assert statuses(told) == [200]


def test_a_head_in_pieces_is_read(line: Line):
    line.app.seen.clear()
    with line.connect() as client:
        for byte in b"POST /a?b HTTP/1.1\r\n" + HOST + b"x: y z\r\ncontent-length: 2\r\n\r\nab":
            client.sendall(bytes([byte]))
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
    [seen] = line.app.seen
    headers = [(b"host", b"localhost"), (b"x", b"y z"), (b"content-length", b"2")]
    assert seen == Seen("POST", b"/a?b", "1.1", headers, b"ab")


def test_values_are_read_without_the_space_around_them(line: Line):
    head = b"GET /a HTTP/1.1\r\n" + HOST + b"X:   a\tb \t \r\ny:\r\nz: \t\r\nw: \xe9\r\n\r\n"
    [seen], _ = line.ask(head)
    assert seen.headers[1:] == [(b"x", b"a\tb"), (b"y", b""), (b"z", b""), (b"w", b"\xe9")]


@pytest.mark.parametrize("target", [b"//x:1/a", b"/a%20b?c%3Fd?e", b"/?", b'/;a=b/c:d@e[f]|"<>'])
def test_a_target_is_seen_as_it_was_sent(line: Line, target: bytes):
    [seen], _ = line.ask(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert seen.target == target.rstrip(b"?")


@pytest.mark.parametrize(
    "target", [b"http://other/x", b"@other/x", b"x", b"/a#b", b"*", b"other:1"]
)
def test_a_target_that_is_no_path_is_never_taken_for_one(line: Line, target: bytes):
    seen, _ = line.ask(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert [one.target for one in seen] in ([], [target])


@pytest.mark.parametrize("method", [b"CONNECT other:1", b"CONNECT /x", b"PRI *"])
def test_a_tunnel_is_not_opened(line: Line, method: bytes):
    told = line.say(method + b" HTTP/1.1\r\n" + HOST + b"connection: close\r\n\r\nx")
    assert b"\r\nconnection: close" in told.lower()


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"content-length: 2\r\ncontent-length: 2", b"ab"),
        (b"content-length: 2, 2", b"ab"),
        (b"content-length: 2\r\ntransfer-encoding: chunked", b"2\r\nab\r\n0\r\n\r\n"),
        (b"transfer-encoding: chunked\r\ncontent-length: 2", b"2\r\nab\r\n0\r\n\r\n"),
        (b"content-length: 2\r\nx: y\r\n fold", b"ab"),
        (b"content-length: 2\nx: y", b"ab"),
        (b"content-length: 0000002", b"ab"),
        (b"transfer-encoding: chunked", b"2;a\rb\r\nab\r\n0\r\n\r\n"),
        (b"transfer-encoding: chunked", b"2;a\x00b\r\nab\r\n0\r\n\r\n"),
        (b"transfer-encoding: chunked", b"2 \r\nab\r\n0\r\n\r\n"),
        (b"content-length: 2\r\nx: a\x01b", b"ab"),
        (b"content-length: 2\r\nx: a\x7fb", b"ab"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused_or_read_in_one(
    line: Line, head: bytes, body: bytes
):
    seen, told = line.ask(b"POST /a HTTP/1.1\r\n" + HOST + head + b"\r\n\r\n" + body)
    assert ([one.body for one in seen], statuses(told)) in (([b"ab"], [200, 200]), ([], [400]))


def test_a_body_in_chunks_is_read_and_what_stands_behind_it_is_no_header(line: Line):
    head = b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: Chunked\r\n\r\n"
    trailer = b"host: other\r\nx-lore-key: k\r\ncontent-length: 5\r\n\r\n"
    [seen], told = line.ask(head + b"2;a=b\r\nab\r\n1\r\nc\r\n0\r\n" + trailer)
    assert statuses(told) == [200, 200]
    assert seen.body == b"abc"
    assert seen.headers[0] == (b"host", b"localhost")
    assert [name for name, _ in seen.headers[1:]] == [b"transfer-encoding"]


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        (b"content-length: 27", b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n"[:27]),
        (b"transfer-encoding: chunked", b"2\r\nab\r\n0\r\n\r\n"),
        (b"x: y", b""),
    ],
)
@pytest.mark.parametrize("offer", [b"h2c", b"websocket"])
def test_a_protocol_that_is_offered_is_seen_and_the_body_is_not_lost(
    line: Line, offer: bytes, framing: bytes, body: bytes
):
    upgrade = b"upgrade: " + offer + b"\r\nconnection: Upgrade, HTTP2-Settings\r\n"
    seen, told = line.ask(
        b"POST /a HTTP/1.1\r\n" + HOST + upgrade + framing + b"\r\n\r\n" + body + SECOND
    )
    first, second = seen
    assert (b"upgrade", offer) in first.headers
    assert first.body == (b"ab" if body.startswith(b"2") else body)
    assert (second.target, second.headers) == (b"/second", [(b"host", b"localhost")])
    assert statuses(told) == [200, 200, 200]


def test_requests_that_are_sent_at_once_are_answered_in_turn(line: Line):
    posted = b"POST /b HTTP/1.1\r\n" + HOST + b"content-length: 2\r\n\r\nab"
    seen, told = line.ask(b"GET /stream HTTP/1.1\r\n" + HOST + b"\r\n" + posted + SECOND)
    assert [one.target for one in seen] == [b"/stream", b"/b", b"/second"]
    assert [one.body for one in seen] == [b"", b"ab", b""]
    assert statuses(told) == [200, 200, 200, 200]
    assert told.index(b"one") < told.index(b"two") < told.index(b"answer")


def test_what_is_no_http_is_refused_after_the_answers_to_what_was(line: Line):
    told = line.say(b"GET /stream HTTP/1.1\r\n" + HOST + b"\r\n" + SECOND + b"no http\r\n\r\n")
    assert statuses(told) == [200, 200, 400]
    assert told.index(b"two") < told.index(b"answer") < told.index(b"BadRequest")


def test_many_requests_that_are_sent_at_once_are_all_answered(line: Line):
    assert statuses(line.say(SECOND * 500 + b"no http\r\n\r\n")) == [200] * 500 + [400]


@pytest.mark.parametrize("said", [b"close", b"Close", b"keep-alive, close"])
def test_who_says_it_is_the_last_request_is_not_heard_further(line: Line, said: bytes):
    line.app.seen.clear()
    told = line.say(b"GET /a HTTP/1.1\r\n" + HOST + b"connection: " + said + b"\r\n\r\n" + SECOND)
    assert statuses(told) == [200]
    assert b"connection: close" in told.lower()
    assert [one.target for one in line.app.seen] == [b"/a"]


@pytest.mark.parametrize("more", [b"", b"connection: keep-alive\r\n"])
@pytest.mark.parametrize("path", [b"/a", b"/stream"])
def test_an_older_client_reads_until_the_end(line: Line, path: bytes, more: bytes):
    line.app.seen.clear()
    told = line.say(b"GET " + path + b" HTTP/1.0\r\n" + HOST + more + b"\r\n" + SECOND)
    head, _, body = told.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert b"connection: close" in head.lower()
    assert body == (b"answer" if path == b"/a" else b"onetwo")
    assert [(one.target, one.version) for one in line.app.seen] == [(path, "1.0")]


def test_who_waits_for_a_word_before_the_body_gets_it(line: Line):
    head = b"POST /a HTTP/1.1\r\n" + HOST + b"content-length: 2\r\nexpect: 100-Continue\r\n\r\n"
    with line.connect() as client:
        client.sendall(head)
        assert client.recv(1_000).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        client.sendall(b"ab")
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")


def test_an_older_client_does_not_get_a_word_it_does_not_know(line: Line):
    head = b"POST /a HTTP/1.0\r\n" + HOST + b"content-length: 2\r\nexpect: 100-continue\r\n\r\n"
    assert statuses(line.say(head + b"ab")) == [200]


@pytest.mark.parametrize("path", [b"/a", b"/stream"])
def test_a_question_for_the_head_has_no_body_and_the_connection_stays(line: Line, path: bytes):
    _, told = line.ask(b"HEAD " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    head, _, rest = told.partition(b"\r\n\r\n")
    assert rest.startswith(b"HTTP/1.1 200")
    assert (b"content-length: 6" in head) == (path == b"/a")


@pytest.mark.parametrize("path", [b"/204", b"/304"])
def test_an_answer_that_has_no_body_ends_with_its_head(line: Line, path: bytes):
    _, told = line.ask(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    head, _, rest = told.partition(b"\r\n\r\n")
    assert rest.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding" not in head.lower()


def test_an_answer_without_a_length_comes_in_chunks(line: Line):
    _, told = line.ask(b"GET /stream HTTP/1.1\r\n" + HOST + b"\r\n")
    head, _, rest = told.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    assert rest.startswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\nHTTP/1.1 200")


def test_an_answer_before_the_body_is_sent_leaves_the_connection(line: Line):
    with line.connect() as client:
        client.sendall(b"POST /early HTTP/1.1\r\n" + HOST + b"content-length: 5\r\n\r\nGE")
        assert statuses(read_until(client, b"early")) == [200]
        client.sendall(b"T /" + SECOND)
        assert statuses(read_until(client, b"answer")) == [200]


def test_a_body_that_turns_out_to_be_none_does_not_spoil_an_answer_that_has_begun(line: Line):
    with line.connect() as client:
        client.sendall(b"POST /begun HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n")
        assert statuses(read_until(client, b"begun")) == [200]
        client.sendall(b"no chunk\r\n")
        assert b"HTTP/1.1" not in read_all(client)
    eventually(lambda: "/begun" in line.app.left)


def test_that_a_client_leaves_is_told_to_the_app(line: Line):
    line.app.left.clear()
    line.app.seen.clear()
    with line.connect() as client:
        client.sendall(b"GET /waits HTTP/1.1\r\n" + HOST + b"\r\n")
        eventually(lambda: bool(line.app.seen))
    eventually(lambda: "/waits" in line.app.left)
    assert [one.target for one in line.app.seen] == [b"/waits"]


def test_the_beginning_of_a_next_head_does_not_cut_off_an_answer(line: Line):
    line.app.left.clear()
    line.app.seen.clear()
    with line.connect() as client:
        client.sendall(b"GET /waits HTTP/1.1\r\n" + HOST + b"\r\n")
        eventually(lambda: bool(line.app.seen))
        client.sendall(b"GET /se")
        client.settimeout(1.5)  # longer than a head may take
        with pytest.raises(TimeoutError):
            client.recv(1)
        assert not line.app.left

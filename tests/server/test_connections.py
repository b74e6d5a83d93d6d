"""HTTP on the wire: what is read of it, what is refused, and how an answer is told."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from starlette.types import Message, Receive, Scope, Send

from lore.server.limits import HEAD_BYTES, Limits
from lore.server.serving import Serving, bind
from tests.waiting import eventually

HOST = b"host: localhost\r\n"
SECOND = b"GET /second HTTP/1.1\r\nhost: localhost\r\n\r\n"


@dataclass(frozen=True)
class Seen:
    """A request as the app saw it."""

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Noting:
    """An app that notes what it sees, and answers as the path says."""

    seen: list[Seen] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note a request once all of it is there."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        path = scope["path"]
        if path == "/early":
            await _tell(send, 200, b"early")
            return
        body, more = b"", True
        if path == "/begun":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left.append(path)
                return
            body, more = body + message["body"], message["more_body"]
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        self.seen.append(
            Seen(
                scope["method"],
                scope["raw_path"] + query,
                scope["http_version"],
                list(scope["headers"]),
                body,
            )
        )
        if path == "/waits":
            await receive()
            self.left.append(path)
        elif path == "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for piece in (b"one", b"two"):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})
        elif path in ("/204", "/304"):
            length = [(b"content-length", b"7")] if path == "/304" else []
            status = int(path[1:])
            await send({"type": "http.response.start", "status": status, "headers": length})
            await send({"type": "http.response.body"})
        else:
            await _tell(send, 200, b"answer")


async def _live(receive: Receive, send: Send) -> None:
    message: Message = {"type": ""}
    while message["type"] != "lifespan.shutdown":
        message = await receive()
        await send({"type": f"{message['type']}.complete"})


async def _tell(send: Send, status: int, body: bytes) -> None:
    length = str(len(body)).encode()
    headers = [(b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Line:
    """A server whose app notes, and connections to it."""

    app: Noting
    port: int

    @contextlib.contextmanager
    def connect(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), 30) as client:
            yield client

    def say(self, sent: bytes) -> bytes:
        """Send bytes and nothing after them; return all that comes back."""
        with self.connect() as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(sent)
            return read_all(client)

    def ask(self, sent: bytes) -> tuple[list[Seen], bytes]:
        """Send requests, and a last one that ends the connection; return what the app saw."""
        self.app.seen.clear()
        told = self.say(
            sent + b"GET /last HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )
        return [one for one in self.app.seen if one.target != b"/last"], told


def read_all(client: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65_536):
            received += piece
    return received


def read_until(client: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.rstrip().endswith(end):
        piece = client.recv(65_536)
        assert piece, received
        received += piece
    return received


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    app = Noting()
    bound, _ = bind("127.0.0.1", 0)
    serving = Serving(app, bound, Limits(head_s=1.0))
    listening = threading.Event()
    thread = threading.Thread(target=serving.run, args=(listening.set,), daemon=True)
    thread.start()
    assert listening.wait(30)
    try:
        yield Line(app, bound.getsockname()[1])
    finally:
        serving.stop()
        thread.join(10)
        bound.close()


def statuses(told: bytes) -> list[int]:
    """Return the statuses of all answers; no body of this app has such a line."""
    return [int(piece[:3]) for piece in told.split(b"HTTP/1.1 ")[1:]]


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
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * HEAD_BYTES,
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x" * HEAD_BYTES,
        b"GET /" + b"a" * HEAD_BYTES,
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"a: b\r\n" * 8_000,
        b"\r\n" * HEAD_BYTES,
    ],
    ids=lambda sent: repr(sent[:60]),
)
def test_a_head_that_does_not_end_is_refused(line: Line, sent: bytes):
    assert is_refused(line, sent)


def test_a_second_head_that_does_not_end_is_refused_after_the_first_answer(line: Line):
    with line.connect() as client:
        client.sendall(SECOND)
        assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /" + b"a" * HEAD_BYTES)
        assert statuses(read_all(client)) == [400]


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
    seen, told = line.ask(head + b"2;a=b\r\nab\r\n1\r\nc\r\n0\r\n" + trailer)
    assert statuses(told) in ([200, 200], [400])
    assert [one.body for one in seen] in ([b"abc"], [])
    for one in seen:
        assert [name for name, _ in one.headers] == [b"host", b"transfer-encoding"]


def test_a_trailer_is_no_header(line: Line):
    head = b"POST /a HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n"
    [seen], told = line.ask(head + b"2\r\nab\r\n0\r\nx-lore-key: k\r\nx: y\r\n\r\n")
    assert statuses(told) == [200, 200]
    assert [name for name, _ in seen.headers] == [b"host", b"transfer-encoding"]


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


def test_more_requests_than_are_held_are_not_all_lost(line: Line):
    told = line.say(SECOND * 5_000 + b"no http\r\n\r\n")
    answers = statuses(told)
    assert answers[:8] == [200] * 8
    assert answers[-1] == 400


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
    eventually(lambda: line.app.left == ["/waits"])
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

"""With no memory, a gateway is not there: bytes, headers and paths pass as they are."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import aiohttp
import brotli
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.faulty_upstream import HEAD, LAST, Peer, chunk, faulty
from tests.gateway.gateway_server import HELLO, MOST_BYTES, Proxied, ask, proxied
from tests.upstream import Call, ModelReply, RawResponse, Text, Thought, Upstream, running_upstream

LIVE = settings(max_examples=60, suppress_health_check=list(HealthCheck))

TOKEN = st.text("abcdefghijklmnopqrstuvwxyz-_0123456789", min_size=1, max_size=20)
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
PATH = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#?\\"), max_size=40
)

NOT_PASSED = {
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "expect",
    "content-length", "proxy-connection", "proxy-authenticate", "proxy-authorization",
}  # fmt: skip


def is_passed(name: str) -> bool:
    return name not in NOT_PASSED and not name.startswith(("x-lore-", "sec-fetch-site"))


@LIVE
@given(body=st.binary(max_size=3_000), wire=st.sampled_from(["/v1/messages", "/v1/any/thing"]))
def test_any_body_reaches_upstream_byte_for_byte(
    gateway: Proxied, up: Upstream, body: bytes, wire: str
):
    gateway.ask(wire, body)
    assert up.requests[-1].body == body


@LIVE
@given(st.lists(st.tuples(TOKEN.map(lambda name: f"x-{name}"), VALUE), max_size=12))
def test_any_header_reaches_upstream_unchanged(
    gateway: Proxied, up: Upstream, pairs: list[tuple[str, str]]
):
    sent = [pair for pair in pairs if is_passed(pair[0])]
    gateway.ask("/v1/anything", b"{}", sent)
    came = [pair for pair in up.requests[-1].headers if pair[0] not in ("host", "content-length")]
    assert came == sent


def test_text_in_any_language_reaches_upstream_byte_for_byte(tmp_path):
    def answer(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    with faulty(answer) as odd, proxied(tmp_path, odd.url) as gateway:
        gateway.ask("/v1/anything", b"{}", [("x-title", "Pröjekt 世界".encode())])
        assert "x-title: Pröjekt 世界\r\n".encode() in odd.requests[0]


@LIVE
@given(path=PATH, query=PATH)
def test_any_path_reaches_upstream_unchanged(gateway: Proxied, up: Upstream, path: str, query: str):
    target = f"/v1/{path}?{query}" if query else f"/v1/{path}"
    before = len(up.requests)
    gateway.ask(target)
    assert up.requests[before].target == target


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_any_method_is_forwarded(gateway: Proxied, up: Upstream, method: str):
    gateway.ask("/v1/files/1", method=method)
    assert up.requests[-1].method == method


@LIVE
@given(
    status=st.sampled_from([200, 201, 204, 301, 400, 404, 418, 429, 500, 503, 529, 599]),
    body=st.binary(max_size=2_000),
    pairs=st.dictionaries(TOKEN.map(lambda name: f"x-{name}"), VALUE, max_size=8),
)
def test_any_response_reaches_the_client_unchanged(
    gateway: Proxied, up: Upstream, status: int, body: bytes, pairs: dict[str, str]
):
    told = {name: value for name, value in pairs.items() if is_passed(name)}
    up.reply_with(RawResponse(status, told, body))
    got = gateway.ask("/v1/anything", b"{}")
    assert got.status == status
    assert got.body == (b"" if status == 204 else body)
    assert {name: got.header(name) for name in told} == told


SAID = ModelReply(
    Thought("First I look."), Text("Grüße, 世界! 🌍 " * 4), Call("Read", {"path": "ä"})
)
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/messages", {**HELLO, "stream": True}),
    (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": HELLO["messages"],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    ),
    ("/v1/responses", {"model": "m", "input": "Hello", "stream": True}),
    (
        "/v1beta/models/g:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
    ),
]


@pytest.mark.parametrize(("path", "tree"), ASKED)
@pytest.mark.parametrize("size", [0, 1, 7])
def test_stream_is_the_same_for_any_chunks(
    gateway: Proxied, up: Upstream, path: str, tree: Any, size: int
):
    events = ModelReply(*SAID.parts, chunk_bytes=size)
    up.reply_with(events)
    got = gateway.ask(path, tree)
    assert got.status == 200
    up.reply_with(ModelReply(*SAID.parts))
    direct = ask(int(up.url.rpartition(":")[2]), path, tree)
    assert _same(got.body) == _same(direct.body)


def _same(stream: bytes) -> list[Any]:
    """Return the events of a stream without the ids that each answer has of its own."""
    told = []
    for line in stream.decode().splitlines():
        if line.startswith("data: {"):
            tree = json.loads(line[6:])
            told.append(_without_ids(tree))
        else:
            told.append(line)
    return told


def _without_ids(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            key: _without_ids(value)
            for key, value in tree.items()
            if not key.endswith(("id", "Id", "encrypted_content"))
        }
    return [_without_ids(one) for one in tree] if isinstance(tree, list) else tree


STREAM = b"".join(
    f'event: e{number}\ndata: {{"n": {number}, "text": "\u00e9\u4e16"}}\n\n'.encode()
    for number in range(5)
)


@dataclass(frozen=True)
class Cutting:
    """A gateway before an upstream that sends its stream in given pieces."""

    gateway: Proxied
    script: list[list[bytes]]

    def passed(self, pieces: list[bytes]) -> bytes:
        self.script.append(pieces)
        return self.gateway.ask("/v1/messages", HELLO).body


@pytest.fixture(scope="module")
def cutting(tmp_path_factory):
    script: list[list[bytes]] = []

    def send_pieces(peer: Peer) -> None:
        peer.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.send(HEAD)
        for piece in script.pop(0):
            peer.send(chunk(piece))
        peer.send(LAST)

    home = tmp_path_factory.mktemp("home")
    with faulty(send_pieces) as served, proxied(home, served.url) as gateway:
        yield Cutting(gateway, script)


@LIVE
@given(cuts=st.lists(st.integers(1, len(STREAM) - 1), max_size=12, unique=True).map(sorted))
def test_stream_is_identical_for_any_cut(cutting: Cutting, cuts: list[int]):
    pieces = [STREAM[a:b] for a, b in pairwise([0, *cuts, len(STREAM)])]
    assert cutting.passed(pieces) == STREAM


def test_stream_is_identical_when_cut_at_every_byte(cutting: Cutting):
    assert cutting.passed([bytes([one]) for one in STREAM]) == STREAM
    for at in range(1, len(STREAM)):
        assert cutting.passed([STREAM[:at], STREAM[at:]]) == STREAM


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
    ],
)
def test_encoded_body_keeps_its_encoding(gateway: Proxied, up: Upstream, name: str, encode: Any):
    body = encode(json.dumps(HELLO).encode())
    got = gateway.ask("/v1/messages", body, {"content-encoding": name})
    asked = up.requests[-1]
    assert (asked.body, asked.header("content-encoding")) == (body, name)
    if name != "deflate":
        assert got.status == 200


def test_response_keeps_the_encoding_that_the_client_accepts(gateway: Proxied, up: Upstream):
    body = gzip.compress(b"hello")
    up.reply_with(RawResponse(200, {"content-encoding": "gzip"}, body))
    got = gateway.ask("/v1/anything", headers={"accept-encoding": "gzip, br"})
    assert up.requests[-1].header("accept-encoding") == "gzip, br"
    assert (got.body, got.header("content-encoding")) == (body, "gzip")


def test_chunked_body_is_forwarded_complete(gateway: Proxied, up: Upstream):
    body = json.dumps(HELLO).encode()
    for path in (b"/v1/messages", b"/v1/files"):
        with gateway.connect() as client:
            client.sendall(
                b"POST " + path + b" HTTP/1.1\r\nhost: localhost\r\n"
                b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
            )
            for at in range(0, len(body), 10):
                client.sendall(chunk(body[at : at + 10]))
            client.sendall(LAST)
            assert client.recv(9) == b"HTTP/1.1 "
        assert up.requests[-1].body == body


def test_too_long_body_is_refused_in_the_providers_format(gateway: Proxied, up: Upstream):
    before = len(up.requests)
    for path in ("/v1/messages", "/v1/chat/completions", "/v1beta/models/g:generateContent"):
        got = gateway.ask(path, b" " * (MOST_BYTES + 1))
        assert got.status == 413
        assert "gateway.max_body_bytes" in got.json["error"]["message"]
    assert len(up.requests) == before


def test_unparsed_body_has_no_size_limit(gateway: Proxied, up: Upstream):
    gateway.ask("/v1/files", b"x" * (MOST_BYTES + 1))
    assert len(up.requests[-1].body) == MOST_BYTES + 1


def test_sixty_four_parallel_clients_get_their_own_responses(tmp_path_factory):
    def say(asked: Any) -> ModelReply:
        return ModelReply(f"You said {asked.json['messages'][0]['content']}.", pause_s=0.01)

    async def one(session: aiohttp.ClientSession, url: str, number: int) -> str:
        tree = {**HELLO, "messages": [{"role": "user", "content": f"<{number}>"}], "stream": True}
        async with session.post(f"{url}/v1/messages", json=tree) as answer:
            return "".join(re.findall(r'"text": ?"([^"]*)"', (await answer.read()).decode()))

    async def all_of(url: str) -> list[str]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            return await asyncio.gather(*(one(session, url, number) for number in range(64)))

    with running_upstream(say) as up, proxied(tmp_path_factory.mktemp("home"), up.url) as gateway:
        told = asyncio.run(all_of(gateway.url))
    assert [f"<{number}>" in text for number, text in enumerate(told)] == [True] * 64

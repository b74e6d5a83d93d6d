"""What passes through the gateway is paid for, however it ends and however it is spelled."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from lore.records import RequestCost, TokenUse
from lore.settings import USER_FILE
from tests.gateway.faulty_upstream import HEAD, LAST, Peer, chunk, faulty
from tests.gateway.gateway_server import HELLO
from tests.gateway.priced_gateway import paying, total
from tests.upstream import RawResponse, Upstream, running_upstream
from tests.waiting import PATIENCE_S, eventually

CHAT = "/v1/chat/completions"
ASKED: dict[str, Any] = {
    "model": "dear",
    "stream": True,
    "messages": [{"role": "user", "content": "Tell me all about tides. " * 40}],
}
HEADERS = {"x-api-key": "of a client"}


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


def say_and_break_off(peer: Peer) -> None:
    said = {"choices": [{"index": 0, "delta": {"content": "The tide is low. " * 20}}]}
    peer.send(HEAD + chunk(b"data: " + json.dumps(said).encode() + b"\n\n"))
    peer.half_close()


def test_a_stream_that_breaks_off_is_entered_as_an_estimate(tmp_path: Path):
    with faulty(say_and_break_off) as up, paying(tmp_path, up.url) as (memory, gateway):
        with suppress(http.client.IncompleteRead):
            gateway.ask(CHAT, ASKED, HEADERS)
        eventually(lambda: total(memory).requests == 1)
        entered = total(memory)
        assert entered.estimated == 1
        assert 250 <= entered.tokens.input_tokens <= 1_000
        assert entered.tokens.output_tokens == 85
        assert entered.usd > 0


def test_a_stream_that_breaks_off_is_estimated_with_the_cached_share_of_the_last_report(
    tmp_path: Path,
):
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    said = {"index": 0, "delta": {"content": "It is low."}, "finish_reason": "stop"}
    events = ({"choices": [said]}, {"choices": [], "usage": usage})
    whole = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)

    def answer_once(peer: Peer) -> None:
        if len(upstream.requests) == 1:
            peer.send(HEAD + chunk(whole + b"data: [DONE]\n\n") + LAST)
        else:
            say_and_break_off(peer)

    again = [{"role": "assistant", "content": "It is low."}, {"role": "user", "content": "Why?"}]
    with faulty(answer_once) as upstream, paying(tmp_path, upstream.url) as (memory, gateway):
        gateway.ask(CHAT, ASKED, HEADERS)
        eventually(lambda: total(memory).requests == 1)
        with suppress(http.client.IncompleteRead):
            gateway.ask(CHAT, {**ASKED, "messages": [*ASKED["messages"], *again]}, HEADERS)
        eventually(lambda: total(memory).requests == 2)
        used = total(memory).tokens
        estimated = used.input_tokens - 1_000
        assert 1_000 <= estimated <= 1_600
        assert used.cache_read_tokens - 800 == pytest.approx(0.8 * estimated, abs=2)


def test_a_client_that_leaves_pays_for_what_it_was_told(tmp_path: Path):
    def say_and_wait(peer: Peer) -> None:
        said = {"choices": [{"index": 0, "delta": {"content": "The tide is low. " * 20}}]}
        peer.send(HEAD + chunk(b"data: " + json.dumps(said).encode() + b"\n\n"))
        peer.wait_until_left()

    with faulty(say_and_wait) as up, paying(tmp_path, up.url) as (memory, gateway):
        body = json.dumps(ASKED).encode()
        with gateway.connect() as client:
            head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            told = b""
            while b"tide" not in told:
                told += client.recv(65_536)
        eventually(lambda: total(memory).requests == 1)
        assert total(memory).estimated == 1
        assert total(memory).tokens.output_tokens == 85


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
}

USED = {"input_tokens": 90, "output_tokens": 50}
MESSAGE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "The tide is low."}],
    "stop_reason": "end_turn",
    "usage": USED,
}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"text": "The tide is low."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USED},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("encoding", ["gzip", "br"])
@pytest.mark.parametrize("recall", ["auto", "off"])
def test_an_answer_that_is_packed_all_the_same_reaches_its_client_and_is_paid_for(
    tmp_path: Path, encoding: str, streams: bool, recall: str
):
    said = json.dumps(MESSAGE).encode()
    if streams:
        said = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in EVENTS)
    packed = ENCODINGS[encoding](said)
    form = "Text/Event-Stream" if streams else "application/json"

    def answer(peer: Peer) -> None:
        head = (
            f"HTTP/1.1 200 OK\r\ncontent-type: {form}\r\ncontent-encoding: {encoding}\r\n"
            f"content-length: {len(packed)}\r\n\r\n"
        )
        peer.send(head.encode() + packed)

    with (
        faulty(answer) as up,
        paying(tmp_path, up.url, gateway_recall=recall) as (memory, gateway),
    ):
        got = gateway.ask("/v1/messages", {**HELLO, "model": "dear", "stream": streams}, HEADERS)
        told = (said, "") if recall == "auto" else (packed, encoding)
        assert (got.body, got.header("content-encoding")) == told
        eventually(lambda: total(memory).requests == 1)
        entered = total(memory)
        assert (entered.tokens.input_tokens, entered.tokens.output_tokens) == (90, 50)
        assert entered.estimated == 0


def test_an_answer_that_breaks_off_would_have_been_as_long_without_lore(tmp_path: Path):
    begun = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    said = {"type": "content_block_delta", "index": 0, "delta": {"text": "The tide is low. " * 200}}

    def say(peer: Peer) -> None:
        events = (b"data: " + json.dumps(one).encode() + b"\n\n" for one in (begun, said))
        peer.send(HEAD + chunk(b"".join(events)))
        peer.half_close()

    with faulty(say) as up, paying(tmp_path, up.url) as (memory, gateway):
        with suppress(http.client.IncompleteRead):
            gateway.ask("/v1/messages", {**HELLO, "model": "dear", "stream": True}, HEADERS)
        eventually(lambda: total(memory).requests == 1)
        entered = total(memory)
        assert (entered.tokens.input_tokens, entered.tokens.output_tokens) == (9, 850)
        assert entered.estimated == 1
        assert entered.usd - 0.009 <= entered.without_usd <= entered.usd


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("within_s", "remembers"), [(PATIENCE_S, False), (0.0, True)])
def test_a_body_in_any_encoding_is_paid_for_without_memory(
    tmp_path: Path, up: Upstream, encoding: str, within_s: float, remembers: bool
):
    body = ENCODINGS[encoding](json.dumps({**HELLO, "model": "dear"}).encode())
    with paying(tmp_path, up.url, within_s=within_s, gateway_memory=remembers) as (memory, gateway):
        got = gateway.ask("/v1/messages", body, {**HEADERS, "content-encoding": encoding})
        assert got.status == 200
        eventually(lambda: total(memory).requests == 1)
        assert total(memory).usd > 0
        assert [line.name for line in memory.budget.spend_report().lines] == ["dear"]


@pytest.mark.parametrize(
    "path", ["/v1//messages", "/v1/./messages", "/%76%31/messages", "/V1/messages"]
)
def test_a_path_in_another_spelling_is_paid_for_and_goes_on_as_it_came(
    tmp_path: Path, up: Upstream, path: str
):
    with paying(tmp_path, up.url) as (memory, gateway):
        gateway.ask(path, {**HELLO, "model": "dear"}, HEADERS)
        assert up.requests[0].path == path
        eventually(lambda: total(memory).usd > 0)


@pytest.mark.parametrize(
    "path",
    ["/v1//messages", "/v1/messages/", "/v1/messages/batches", "/v1/embeddings", "/v1/completions"],
)
def test_a_spent_budget_refuses_all_that_may_cost_something(
    tmp_path: Path, up: Upstream, path: str
):
    with paying(tmp_path, up.url, daily_budget=0.0) as (_, gateway):
        got = gateway.ask(path, {**HELLO, "model": "dear"}, HEADERS)
        assert got.status == 402
        assert "LORE_DAILY_BUDGET" in got.body.decode()
        assert not up.requests


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/messages/batches/b_1/cancel"),
        ("GET", "/v1/models"),
        ("DELETE", "/v1/files/f_1"),
    ],
)
def test_a_spent_budget_lets_pass_what_is_free(
    tmp_path: Path, up: Upstream, method: str, path: str
):
    with paying(tmp_path, up.url, daily_budget=0.0) as (_, gateway):
        body = HELLO if method == "POST" else None
        assert gateway.ask(path, body, HEADERS, method).status != 402
        assert up.requests


@pytest.mark.parametrize(("status", "entries"), [(200, 1), (400, 0)])
def test_what_nobody_reads_is_entered_as_unpriced_if_it_is_answered(
    tmp_path: Path, up: Upstream, status: int, entries: int
):
    up.reply_with(RawResponse(status, {"content-type": "application/json"}, b"{}"))
    with paying(tmp_path, up.url, daily_budget=5.0) as (memory, gateway):
        headers = {"accept-encoding": "gzip", **HEADERS}
        assert gateway.ask("/v1/embeddings", {"input": "x"}, headers).status == status
        assert up.requests[0].header("accept-encoding") == "gzip"
        gateway.ask("/v1/messages", {**HELLO, "model": "dear"}, HEADERS)
        eventually(lambda: total(memory).requests == 1 + entries)
        assert total(memory).unpriced == entries
        names = {line.name for line in memory.budget.spend_report().lines}
        assert names == ({"dear", "/v1/embeddings"} if entries else {"dear"})


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/messages"])
@pytest.mark.parametrize(("within_s", "remembers"), [(0.15, False), (0.0, True)])
def test_money_that_is_set_aside_for_others_is_not_there_for_any_request(
    tmp_path: Path, up: Upstream, path: str, within_s: float, remembers: bool
):
    settings: dict[str, Any] = {"daily_budget": 5.0, "gateway_memory": remembers}
    with paying(tmp_path, up.url, within_s=within_s, **settings) as (memory, gateway):
        memory.budget.reserve_request(RequestCost("dear", TokenUse(5_000)))
        for _ in range(6):
            got = gateway.ask(path, {**HELLO, "model": "dear"}, HEADERS)
            assert (got.status, got.header("retry-after")) == (429, "5")
        assert not up.requests


def test_a_budget_that_is_set_meanwhile_holds_where_memory_is_off(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url, gateway_memory=False) as (_, gateway):
        assert gateway.ask("/v1/messages", {**HELLO, "model": "dear"}, HEADERS).status == 200
        (tmp_path / USER_FILE).write_text("daily_budget = 0\n")
        assert gateway.ask("/v1/messages", {**HELLO, "model": "dear"}, HEADERS).status == 402

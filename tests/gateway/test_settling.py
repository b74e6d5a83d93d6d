"""What passes through the gateway is paid for, however it ends and however it is spelled."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.gateway.turning import MemoryTurning
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import SpendLine
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.faulty import HEAD, Peer, chunk, faulty
from tests.gateway.proxied import Proxied, proxied
from tests.gateway.upstream import Upstream, upstream
from tests.waiting import PATIENCE_S, eventually

CHAT = "/v1/chat/completions"
ASKED: dict[str, Any] = {
    "model": "dear",
    "stream": True,
    "messages": [{"role": "user", "content": "Tell me all about tides. " * 40}],
}
PRICES = ("dear input=1000 output=1000",)
HEADERS = {"x-api-key": "of a client"}


@contextmanager
def paying(
    home: Path, url: str, *, within_s: float = PATIENCE_S, **settings: Any
) -> Iterator[tuple[Memory, Proxied]]:
    config = replace(load({}, home=home).settings, prices=PRICES, **settings)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        turning = MemoryTurning(memory, Composer(memory))
        with proxied(home, url, turning=turning, within_s=within_s) as gateway:
            yield memory, gateway
        turning.close()


def total(memory: Memory) -> SpendLine:
    memory.database.write(lambda _: None)
    return memory.spend_report().total


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream() as served:
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

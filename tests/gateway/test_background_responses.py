"""What a model writes in the background is paid for, and remembered, once it is fetched."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.errors import StoreBusy
from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.plugin_protocol import ClientRequest, RequestPlan
from lore.gateway.turn_recorder import PendingTurn
from lore.memory import Memory
from lore.records import SpendLine, TokenUse
from tests.gateway.gateway_server import Got, Proxied
from tests.gateway.priced_gateway import paying, total
from tests.upstream import RawResponse, Upstream, running_upstream
from tests.waiting import eventually

ASKED: dict[str, Any] = {
    "model": "dear",
    "background": True,
    "input": [{"role": "user", "content": "Tell me all about tides. " * 40}],
}
HEADERS = {"authorization": "Bearer of a client"}
JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}

ID = "resp_68aa"
PATH = f"/v1/responses/{ID}"
QUEUED: dict[str, Any] = {
    "id": ID,
    "object": "response",
    "status": "queued",
    "background": True,
    "error": None,
    "output": [],
    "usage": None,
}
TIDE = "The tide is low at noon. "
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": TIDE * 16, "annotations": []}],
}
USED = {"input_tokens": 250, "output_tokens": 50, "input_tokens_details": {"cached_tokens": 200}}
WHOLE = {**QUEUED, "status": "completed", "output": [SAID], "usage": USED}
TOOK = TokenUse(fresh_tokens=50, cache_read_tokens=200, output_tokens=50)


def told(response: dict[str, Any]) -> RawResponse:
    return RawResponse(200, JSON, json.dumps(response).encode())


def streamed(*events: dict[str, Any]) -> RawResponse:
    said = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]
    return RawResponse(200, STREAM, b"".join(said))


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


def begin(
    up: Upstream,
    memory: Memory,
    gateway: Proxied,
    headers: dict[str, str] = HEADERS,
    **more: Any,
) -> SpendLine:
    """Ask for something in the background, and return what was entered of that."""
    up.reply_with(told(QUEUED))
    assert gateway.ask("/v1/responses", {**ASKED, **more}, headers).json["status"] == "queued"
    eventually(lambda: total(memory).requests == 1)
    entered = total(memory)
    assert entered.estimated == 1
    assert entered.tokens.output_tokens > 1_000
    return entered


def fetch(up: Upstream, gateway: Proxied, answer: RawResponse, path: str = PATH) -> Got:
    up.reply_with(answer)
    return gateway.ask(path, headers=HEADERS)


def stored(memory: Memory) -> list[str]:
    memory.database.write(lambda _: None)
    return [
        part.text
        for session in memory.sessions()
        for message in memory.sessions.messages(session.id)
        for part in message.parts
    ]


@pytest.mark.parametrize("remembers", [True, False])
def test_background_response_is_charged_by_its_usage_once_fetched(
    tmp_path: Path, up: Upstream, remembers: bool
):
    with paying(tmp_path, up.url, gateway_memory=remembers) as (memory, gateway):
        before = begin(up, memory, gateway)
        assert fetch(up, gateway, told({**QUEUED, "status": "in_progress"})).status == 200
        assert total(memory) == before
        for _ in range(3):
            assert fetch(up, gateway, told(WHOLE)).json == WHOLE
        eventually(lambda: total(memory).tokens == TOOK)
        assert (total(memory).requests, total(memory).estimated) == (1, 0)
        assert total(memory).usd == pytest.approx(0.1 + 0.2)
        assert total(memory).without_usd == pytest.approx(0.1 + 0.2)
        (counted,) = memory.budget.spend_counters()
        assert (counted.requests, counted.tokens) == (1, TOOK)
        assert counted.usd == pytest.approx(0.1 + 0.2)


def test_fetched_stream_reports_its_usage(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        before = begin(up, memory, gateway)
        path = f"{PATH}?stream=true&starting_after=2"
        delta = {"type": "response.output_text.delta", "delta": TIDE}
        fetch(up, gateway, streamed(delta), path)
        assert total(memory) == before
        done = {"type": "response.output_item.done", "output_index": 0, "item": SAID}
        fetch(up, gateway, streamed(delta, done, {"type": "response.completed", "response": WHOLE}))
        eventually(lambda: total(memory).tokens == TOOK)


def test_aborted_background_stream_is_charged_by_its_usage_once_fetched(
    tmp_path: Path, up: Upstream
):
    with paying(tmp_path, up.url) as (memory, gateway):
        up.reply_with(streamed({"type": "response.created", "response": QUEUED}))
        gateway.ask("/v1/responses", {**ASKED, "stream": True}, HEADERS)
        eventually(lambda: total(memory).estimated == 1)
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: total(memory).tokens == TOOK)


def test_response_fetched_after_a_restart_corrects_the_ledger(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
    with paying(tmp_path, up.url) as (memory, gateway):
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: total(memory).tokens == TOOK)


def test_unused_reservation_returns_to_the_daily_budget(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url, daily_budget=2.0) as (memory, gateway):
        begin(up, memory, gateway)
        assert memory.budget.day_budget().spent_usd > 2.0
        assert gateway.ask("/v1/responses", ASKED, HEADERS).status == 402
        assert fetch(up, gateway, told(WHOLE)).json == WHOLE
        eventually(lambda: total(memory).tokens == TOOK)
        up.reply_with(told({**WHOLE, "id": "resp_other"}))
        assert (
            gateway.ask("/v1/responses", {**ASKED, "max_output_tokens": 9}, HEADERS).status == 200
        )


def test_failed_background_response_is_free(tmp_path: Path, up: Upstream):
    error = {"code": "server_error", "message": "It did not work."}
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
        fetch(up, gateway, told({**QUEUED, "status": "failed", "error": error}))
        eventually(lambda: total(memory).usd == 0)
        assert total(memory).tokens == TokenUse()


@pytest.mark.parametrize("cancels", [True, False])
def test_cancelled_response_costs_prompt_and_output_so_far(
    tmp_path: Path, up: Upstream, cancels: bool
):
    with paying(tmp_path, up.url) as (memory, gateway):
        before = begin(up, memory, gateway)
        off = told({**QUEUED, "status": "cancelled", "output": [SAID]})
        if cancels:
            up.reply_with(off)
            assert gateway.ask(f"{PATH}/cancel", b"", HEADERS, method="POST").status == 200
        else:
            fetch(up, gateway, off)
        eventually(lambda: total(memory).tokens.output_tokens == 100)
        assert total(memory).estimated == 1
        assert total(memory).tokens.input_tokens == before.tokens.input_tokens


def test_compressed_background_response_is_read(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
        packed = gzip.compress(json.dumps(WHOLE).encode())
        got = fetch(up, gateway, RawResponse(200, {**JSON, "content-encoding": "gzip"}, packed))
        assert got.body == packed
        assert up.requests[-1].header("accept-encoding") == "identity"
        eventually(lambda: total(memory).tokens == TOOK)


@pytest.mark.parametrize(
    "answer",
    [
        RawResponse(404, JSON, b'{"error": {"message": "No."}}'),
        RawResponse(200, JSON, b"{"),
        told({}),
    ],
)
def test_unfinished_response_changes_nothing(tmp_path: Path, up: Upstream, answer: RawResponse):
    with paying(tmp_path, up.url) as (memory, gateway):
        before = begin(up, memory, gateway)
        assert fetch(up, gateway, answer).body == answer.body
        fetch(up, gateway, told({**WHOLE, "id": "resp_other"}), "/v1/responses/resp_other")
        assert total(memory) == before


def test_background_response_is_recorded_once(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
        for _ in range(2):
            fetch(up, gateway, told(WHOLE))
        eventually(lambda: any(TIDE in one for one in stored(memory)))
        assert sum(TIDE in one for one in stored(memory)) == 1
        assert sum("Tell me all about tides" in one for one in stored(memory)) == 1


class Late(MemoryPlugin):
    """Lets all requests pass without memory."""

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        raise StoreBusy(incoming.path)

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        raise StoreBusy(incoming.path)


PLUGINS = pytest.mark.parametrize("plugin", [MemoryPlugin, Late], ids=["in time", "late"])
SESSION = {**HEADERS, "session_id": "s-1", "originator": "codex_cli_rs"}


@PLUGINS
@pytest.mark.parametrize("headers", [HEADERS, SESSION], ids=["unnamed", "named"])
def test_background_response_is_recorded_although_others_were_forgotten(
    tmp_path: Path, up: Upstream, headers: dict[str, str], plugin: type[MemoryPlugin]
):
    with paying(tmp_path, up.url, plugin) as (memory, gateway):
        begin(up, memory, gateway, headers)
        memory.forget(id=memory.remember("The staging port is 5436").id)
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: sum(TIDE in one for one in stored(memory)) == 1)
        assert sum("Tell me all about tides" in one for one in stored(memory)) == 1


@PLUGINS
@pytest.mark.parametrize("forgets", ["session", "words"])
def test_background_turn_that_was_forgotten_is_not_recorded(
    tmp_path: Path, up: Upstream, forgets: str, plugin: type[MemoryPlugin]
):
    with paying(tmp_path, up.url, plugin) as (memory, gateway):
        begin(up, memory, gateway, SESSION)
        eventually(lambda: stored(memory))
        how = {"session": "s-1"} if forgets == "session" else {"match": "all about tides"}
        assert memory.forget(**how)
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: total(memory).tokens == TOOK)
    with paying(tmp_path, up.url) as (memory, gateway):
        assert not stored(memory)


@PLUGINS
def test_private_turn_does_not_become_pending(
    tmp_path: Path, up: Upstream, plugin: type[MemoryPlugin]
):
    said = [
        {"role": "user", "content": "/lore:amnesia on"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "The staging port is 5436."},
    ]
    with paying(tmp_path, up.url, plugin) as (memory, gateway):
        begin(up, memory, gateway, SESSION, input=said)
        assert not any(
            "5436" in str(one.entries) for one in gc.get_objects() if type(one) is PendingTurn
        )
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: total(memory).tokens == TOOK)
    with paying(tmp_path, up.url) as (memory, gateway):
        assert not stored(memory)

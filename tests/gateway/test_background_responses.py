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
from tests.gateway.paid import paying, total
from tests.gateway.proxied import Got, Proxied
from tests.gateway.upstream import Answers, Upstream, upstream
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


def told(response: dict[str, Any]) -> Answers:
    return Answers(200, JSON, json.dumps(response).encode())


def streamed(*events: dict[str, Any]) -> Answers:
    said = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]
    return Answers(200, STREAM, b"".join(said))


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream() as served:
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
    assert gateway.ask("/v1/responses", {**ASKED, **more}, headers).tree["status"] == "queued"
    eventually(lambda: total(memory).requests == 1)
    entered = total(memory)
    assert entered.estimated == 1
    assert entered.tokens.output_tokens > 1_000
    return entered


def fetch(up: Upstream, gateway: Proxied, answer: Answers, path: str = PATH) -> Got:
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
def test_what_was_written_in_the_background_costs_what_it_took_once_it_is_fetched(
    tmp_path: Path, up: Upstream, remembers: bool
):
    with paying(tmp_path, up.url, gateway_memory=remembers) as (memory, gateway):
        before = begin(up, memory, gateway)
        assert fetch(up, gateway, told({**QUEUED, "status": "in_progress"})).status == 200
        assert total(memory) == before
        for _ in range(3):
            assert fetch(up, gateway, told(WHOLE)).tree == WHOLE
        eventually(lambda: total(memory).tokens == TOOK)
        assert (total(memory).requests, total(memory).estimated) == (1, 0)
        assert total(memory).usd == pytest.approx(0.1 + 0.2)
        assert total(memory).without_usd == pytest.approx(0.1 + 0.2)
        (counted,) = memory.budget.spend_counters()
        assert (counted.requests, counted.tokens) == (1, TOOK)
        assert counted.usd == pytest.approx(0.1 + 0.2)


def test_a_stream_that_is_fetched_tells_what_it_took(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        before = begin(up, memory, gateway)
        path = f"{PATH}?stream=true&starting_after=2"
        delta = {"type": "response.output_text.delta", "delta": TIDE}
        fetch(up, gateway, streamed(delta), path)
        assert total(memory) == before
        done = {"type": "response.output_item.done", "output_index": 0, "item": SAID}
        fetch(up, gateway, streamed(delta, done, {"type": "response.completed", "response": WHOLE}))
        eventually(lambda: total(memory).tokens == TOOK)


def test_a_stream_in_the_background_that_broke_off_costs_what_it_took_once_it_is_fetched(
    tmp_path: Path, up: Upstream
):
    with paying(tmp_path, up.url) as (memory, gateway):
        up.reply_with(streamed({"type": "response.created", "response": QUEUED}))
        gateway.ask("/v1/responses", {**ASKED, "stream": True}, HEADERS)
        eventually(lambda: total(memory).estimated == 1)
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: total(memory).tokens == TOOK)


def test_what_is_fetched_after_a_restart_is_corrected_too(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
    with paying(tmp_path, up.url) as (memory, gateway):
        fetch(up, gateway, told(WHOLE))
        eventually(lambda: total(memory).tokens == TOOK)


def test_the_budget_of_a_day_has_back_what_was_not_taken(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url, daily_budget=2.0) as (memory, gateway):
        begin(up, memory, gateway)
        assert memory.budget.day_budget().spent_usd > 2.0
        assert gateway.ask("/v1/responses", ASKED, HEADERS).status == 402
        assert fetch(up, gateway, told(WHOLE)).tree == WHOLE
        eventually(lambda: total(memory).tokens == TOOK)
        up.reply_with(told({**WHOLE, "id": "resp_other"}))
        assert (
            gateway.ask("/v1/responses", {**ASKED, "max_output_tokens": 9}, HEADERS).status == 200
        )


def test_a_response_that_failed_in_the_background_is_free(tmp_path: Path, up: Upstream):
    error = {"code": "server_error", "message": "It did not work."}
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
        fetch(up, gateway, told({**QUEUED, "status": "failed", "error": error}))
        eventually(lambda: total(memory).usd == 0)
        assert total(memory).tokens == TokenUse()


@pytest.mark.parametrize("cancels", [True, False])
def test_a_response_that_was_called_off_costs_its_prompt_and_what_was_written(
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


def test_an_answer_that_is_packed_all_the_same_is_read(tmp_path: Path, up: Upstream):
    with paying(tmp_path, up.url) as (memory, gateway):
        begin(up, memory, gateway)
        packed = gzip.compress(json.dumps(WHOLE).encode())
        got = fetch(up, gateway, Answers(200, {**JSON, "content-encoding": "gzip"}, packed))
        assert got.body == packed
        assert up.asked[-1].header("accept-encoding") == "identity"
        eventually(lambda: total(memory).tokens == TOOK)


@pytest.mark.parametrize(
    "answer",
    [Answers(404, JSON, b'{"error": {"message": "No."}}'), Answers(200, JSON, b"{"), told({})],
)
def test_what_tells_of_no_end_changes_nothing(tmp_path: Path, up: Upstream, answer: Answers):
    with paying(tmp_path, up.url) as (memory, gateway):
        before = begin(up, memory, gateway)
        assert fetch(up, gateway, answer).body == answer.body
        fetch(up, gateway, told({**WHOLE, "id": "resp_other"}), "/v1/responses/resp_other")
        assert total(memory) == before


def test_what_was_written_in_the_background_is_remembered_once(tmp_path: Path, up: Upstream):
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
def test_what_was_written_in_the_background_is_remembered_though_others_are_forgotten(
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
def test_what_was_forgotten_meanwhile_is_not_remembered_when_it_is_fetched(
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
def test_what_was_asked_in_amnesia_is_not_awaited(
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

"""Memory that is locked, damaged, full or missing: every request passes as its client sent it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.errors import EmbedderError, StoreBusy
from lore.gateway.plugin_protocol import ClientRequest, Command, RequestPlan
from lore.gateway.workers import Workers
from lore.records.gateway import GatewayStats
from lore.store import dialogue_state
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import HELLO, proxied
from tests.gateway.store_lock import locked
from tests.gateway.test_memory_plugin import HEADERS, HERE, PATH, Life, life
from tests.gateway.test_request_planner import Noting
from tests.trust.test_faults import small_disk
from tests.upstream import Call, ModelReply, Text, Upstream, running_upstream
from tests.waiting import PATIENCE_S, eventually

__all__ = ["small_disk"]

SESSION = "x-claude-code-session-id"

LOCKED_S = 600.0
"""So long a write waits for a lock in these tests: what waits for one hangs."""


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served
        assert not served.rejected


def test_responses_with_recall_end_while_the_store_is_locked(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, store_busy_timeout_s=LOCKED_S) as talk:
        talk.memory.remember("The staging port is 5436", project=HERE)
        look = Call("recall", {"query": "staging port"})
        talk.ask("Hello.")
        with locked(talk.memory.database.path):
            for n in range(6):
                up.reply_with(
                    ModelReply(Text("Let me see."), look), ModelReply(Text("It is 5436."))
                )
                told = talk.ask(f"Which port does staging have? {n}")
                assert told["content"][-1]["text"].endswith("It is 5436.")
                assert not talk.got.header("x-lore-degraded")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/lore:status", "Session s-1"),
        ("/LORE:STATUS", "Session s-1"),
        ("/lore:amnesia on", "nothing of this conversation is stored"),
        ("lore:remember Invoices are numbered by year.", "Stored"),
    ],
)
def test_command_is_answered_when_memory_is_late(
    tmp_path: Path, up: Upstream, typed: str, told: str
):
    with life(tmp_path, up, within_s=0.0) as talk:
        assert told in talk.ask(typed)["content"][0]["text"]
    assert not up.requests


def test_commands_and_private_mode_work_while_the_store_is_locked(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.remember("The staging port is 5436", project=HERE)
        with locked(talk.memory.database.path):
            assert "Session s-1" in talk.ask("/lore:status")["content"][0]["text"]
            told = talk.ask("/lore:remember Invoices are numbered by year.")
            assert "The command failed" in told["content"][0]["text"]
            told = talk.ask("/lore:amnesia on")
            assert "only while Lore runs" in told["content"][0]["text"]
            assert not up.requests
            talk.ask("The merger is on the ninth; which port has staging?")
            assert "5436" not in talk.prompt()
            assert "Private mode is on" in talk.ask("/lore:status")["content"][0]["text"]
        talk.ask("And again, the ninth.")
        eventually(lambda: _is_private(talk))
        assert "ninth" not in " ".join(talk.stored())


def _is_private(talk: Life) -> bool:
    with talk.memory.database.read() as db:
        return dialogue_state.is_private(db, "s-1")


def test_failed_command_is_answered_with_an_error(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.database.close()
        for typed in ("/lore:status", "/lore:remember Invoices.", "/lore:amnesia off"):
            assert "The command failed" in talk.ask(typed)["content"][0]["text"]
        assert "nothing of this" in talk.ask("/lore:amnesia on")["content"][0]["text"]
    assert not up.requests


def test_lone_surrogate_does_not_break_a_session(tmp_path: Path, up: Upstream):
    half = chr(0xD83D)
    with life(tmp_path, up, gateway_recall="off") as talk:
        body = json.dumps({**HELLO, "messages": [{"role": "user", "content": f"Cut {half}"}]})
        got = talk.gateway.ask(PATH, body.encode(), HEADERS)
        assert (got.status, got.header("x-lore-degraded")) == (200, "")
        assert got.header("x-lore-layer") == "0"
        assert up.requests[-1].body == body.encode()
        eventually(lambda: talk.stored()[:1] == ["Cut \ufffd"])


def test_damaged_store_stops_no_request(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.ask("Hello.")
        eventually(lambda: len(talk.stored()) == 2)  # or it is written over the damage
        path = talk.memory.database.path
        for name in (path, path.with_name(f"{path.name}-wal")):
            with name.open("r+b") as file:
                file.write(b"\xff" * name.stat().st_size)
        for n in range(4):
            body = json.dumps({**HELLO, "messages": [{"role": "user", "content": f"Hello {n}"}]})
            got = talk.gateway.ask(PATH, body.encode(), {**HEADERS, SESSION: f"s-{n + 2}"})
            assert got.status == 200
            assert got.header("x-lore-degraded")
            assert up.requests[-1].body == body.encode()


def test_full_disk_stops_no_request(small_disk: Path, up: Upstream):
    filler = small_disk / "filler"
    with life(small_disk / "home", up) as talk:
        talk.ask("Hello.")
        eventually(lambda: len(talk.stored()) == 2)
        space = os.statvfs(small_disk)
        filler.write_bytes(b"x" * (space.f_bavail * space.f_frsize))
        for n in range(4):
            assert talk.ask(f"Hello again, for the {n}th time. " + "word " * 20_000)
        filler.unlink()
        talk.ask("Now there is room.")
        eventually(lambda: "Now there is room." in talk.stored())


@pytest.mark.parametrize("fails", [EmbedderError("gone"), OSError("gone")])
def test_failing_embedder_stops_no_request(tmp_path: Path, up: Upstream, fails: Exception):
    def fail(_texts: object) -> None:
        raise fails

    with life(tmp_path, up, embedder=FakeEmbedder(before=fail)) as talk:
        for n in range(3):
            assert talk.ask(f"Which port does staging have? {n}")
            talk.ask("/lore:status")
    assert len(up.requests) == 3


def test_requests_with_a_budget_are_counted_while_the_store_is_locked(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, within_s=0.05, daily_budget=100.0) as talk:
        assert talk.memory.budget.load_prices(wait_s=PATIENCE_S)
        with locked(talk.memory.database.path):
            for n in range(3):
                talk.ask(f"Hello {n}.")
        eventually(lambda: talk.memory.budget.spend_report().total.requests == 3)


class Stuck:
    """Admits nobody until it is let go, and then counts."""

    def __init__(self) -> None:
        self.release, self.noting = threading.Event(), Noting()
        self.workers = Workers()

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        raise StoreBusy(incoming.path)

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        raise StoreBusy(incoming.path)

    def find_command(self, incoming: ClientRequest) -> Command | None:
        raise AssertionError(incoming.path)

    def may_wait(self) -> bool:
        return True

    def is_limited(self) -> bool:
        return False

    def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        del incoming, until_s
        self.release.wait(PATIENCE_S)
        return RequestPlan(observer=self.noting)


def test_request_with_a_late_budget_check_passes_and_is_counted_later(tmp_path: Path, up: Upstream):
    stuck = Stuck()
    with proxied(tmp_path, up.url, plugin=stuck, within_s=0.15) as gateway:
        got = gateway.ask(PATH, HELLO, HEADERS)
        assert (got.status, got.header("x-lore-degraded")) == (200, "StoreBusy")
        assert not stuck.noting.outcomes
        stuck.release.set()
        assert eventually(lambda: stuck.noting.outcomes) == ["complete"]
        assert stuck.noting.body == got.body


def test_requests_without_memory_are_counted_and_logged_once(
    tmp_path: Path, up: Upstream, caplog: pytest.LogCaptureFixture
):
    stats, stuck = GatewayStats(), Stuck()
    stuck.release.set()
    with proxied(tmp_path, up.url, plugin=stuck, stats=stats) as gateway:
        for _ in range(3):
            gateway.ask(PATH, HELLO, HEADERS)
    assert (stats.requests, stats.degraded()) == (3, {"StoreBusy": 3})
    assert [record.message for record in caplog.records].count("without memory") == 1

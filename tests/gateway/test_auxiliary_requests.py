"""Requests that are no turns wait and pay as turns do, and leave no money set aside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.errors import StoreBusy
from lore.gateway.billing import BillingObserver
from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.plugin_protocol import ClientRequest, RequestPlan
from lore.gateway.session.prompt_composer import PromptComposer
from lore.gateway.session.session_state import ComposedPrompt
from lore.memory import Memory
from lore.records import ClientSession, Dialogue, Spend
from lore.settings import load
from lore.store import spend
from tests.fakes import FakeEmbedder, FixedClock
from tests.gateway.gateway_server import HELLO, proxied
from tests.gateway.priced_gateway import PRICES, total
from tests.gateway.test_memory_plugin import HEADERS, HERE, PATH
from tests.upstream import ModelReply, Text, Upstream, running_upstream
from tests.waiting import PATIENCE_S, eventually

SUMMARY = "CRITICAL: Respond with TEXT ONLY. Sum up what was said."
NEARLY = {
    "anthropic-ratelimit-tokens-limit": "1000",
    "anthropic-ratelimit-tokens-remaining": "178",
}


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


def asking(text: str, **more: Any) -> dict[str, Any]:
    return {**HELLO, "model": "dear", "messages": [{"role": "user", "content": text}], **more}


class Unable(PromptComposer):
    """Cannot look up what a summary is made of."""

    def compose_full(self, client: ClientSession, dialogue: Dialogue) -> ComposedPrompt:
        raise StoreBusy(client.session, hint=dialogue.model)


def test_failed_summary_releases_its_reservation(tmp_path: Path, up: Upstream):
    config = replace(load({}, home=tmp_path).settings, prices=PRICES, daily_budget=50.0)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, Unable(memory))
        with proxied(tmp_path, up.url, plugin=plugin, within_s=PATIENCE_S) as gateway:
            for _ in range(3):
                got = gateway.ask(PATH, asking(SUMMARY), HEADERS)
                assert (got.status, got.header("x-lore-degraded")) == (200, "StoreBusy")
            eventually(lambda: total(memory).requests == 3)
            memory.database.write(lambda _: None)
            assert memory.budget.day_budget().reserved_usd == 0
        plugin.close()


class Failing(MemoryPlugin):
    """Lets all requests pass without memory."""

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        raise StoreBusy(incoming.path)

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        raise StoreBusy(incoming.path)


class Bare(MemoryPlugin):
    """Has nothing at hand."""

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        raise StoreBusy(incoming.path)


@pytest.mark.parametrize("plugin_class", [Failing, Bare])
def test_turn_that_was_passed_through_is_stored(
    tmp_path: Path, up: Upstream, plugin_class: type[MemoryPlugin]
):
    up.reply_with(ModelReply(Text("In the harbour.")))
    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        plugin = plugin_class(memory, PromptComposer(memory))
        with proxied(tmp_path, up.url, plugin=plugin, within_s=PATIENCE_S) as gateway:
            got = gateway.ask(PATH, asking("Where is the lamp?"), HEADERS)
            assert got.header("x-lore-degraded") == "StoreBusy"
            eventually(lambda: total(memory).requests == 1)
        told = [part.text for one in memory.sessions.messages("s-1") for part in one.parts]
        assert told == ["Where is the lamp?", "In the harbour."]
        plugin.close()


@pytest.mark.parametrize("why", ["summary", "amnesia", "amnesia that ended", "subagent", "off"])
def test_private_turn_that_was_passed_through_is_not_stored(tmp_path: Path, up: Upstream, why: str):
    client = ClientSession("s-1", "claude-code", HERE)
    config = replace(load({}, home=tmp_path).settings, gateway_memory=why != "off")
    helper = {"x-claude-code-agent-id": "h"} if why == "subagent" else {}
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        composer = PromptComposer(memory)
        if why.startswith("amnesia"):
            composer.sessions.begin_private_mode(client)
        if why == "amnesia that ended":
            composer.sessions.end_private_mode(client, Dialogue("m", ()))
        plugin = (MemoryPlugin if why == "off" else Failing)(memory, composer)
        with proxied(tmp_path, up.url, plugin=plugin, within_s=PATIENCE_S) as gateway:
            asked = SUMMARY if why == "summary" else "Where is the lamp?"
            gateway.ask(PATH, asking(asked), {**HEADERS, **helper})
            eventually(lambda: total(memory).requests == 1)
        assert not memory.sessions()
        plugin.close()


@pytest.mark.parametrize(
    ("plugin_class", "remembers", "asked"),
    [
        (MemoryPlugin, False, "Hello?"),
        (Failing, True, "Hello?"),
        (MemoryPlugin, True, SUMMARY),
    ],
    ids=["without memory", "degraded", "summary"],
)
def test_every_request_is_delayed_by_the_provider_quota(
    tmp_path: Path, up: Upstream, plugin_class: type[MemoryPlugin], remembers: bool, asked: str
):
    up.reply_with(ModelReply(Text("Yes."), headers=NEARLY), ModelReply(Text("No.")))
    config = replace(load({}, home=tmp_path).settings, prices=PRICES, gateway_memory=remembers)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = plugin_class(memory, PromptComposer(memory))
        with proxied(tmp_path, up.url, plugin=plugin) as gateway:
            assert not gateway.ask(PATH, asking(asked), HEADERS).header("x-lore-delay-s")
            eventually(lambda: total(memory).requests == 1)
            assert gateway.ask(PATH, asking(asked), HEADERS).header("x-lore-delay-s") == "0.7"
            eventually(lambda: total(memory).delayed == 1)
        plugin.close()


def test_requests_without_memory_are_delayed_by_the_daily_budget(
    tmp_path: Path, up: Upstream, clock: FixedClock
):
    config = load({}, home=tmp_path).settings
    config = replace(config, prices=PRICES, daily_budget=10.0, gateway_memory=False)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        spent = Spend("a", clock(), "request:turn", "dear", {}, 5.6)
        memory.database.write(lambda db: spend.add(db, spent))
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(tmp_path, up.url, plugin=plugin) as gateway:
            got = gateway.ask(PATH, asking("Hello?"), HEADERS)
            assert 0.5 <= float(got.header("x-lore-delay-s")) < 1
            eventually(lambda: total(memory).delayed == 1)
        plugin.close()


def test_cost_of_a_late_request_belongs_to_its_session(tmp_path: Path):
    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        raw = json.dumps(asking("Hello?")).encode()
        admitted = plugin.passthrough(ClientRequest("anthropic", PATH, "", HEADERS, raw, 1_000_000))
        assert isinstance(admitted.observer, BillingObserver)
        reserved = admitted.observer.reservation.hold
        assert (reserved.cost.session, reserved.cost.project) == ("s-1", HERE)
        plugin.close()

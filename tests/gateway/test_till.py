"""An answer that takes several requests has money set aside for each, and leaves none behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.errors import BudgetSpent, StoreBusy
from lore.gateway.apis import anthropic
from lore.gateway.exchanges import Incoming
from lore.gateway.paying import Bill, lengthened
from lore.gateway.taking import Taken
from lore.gateway.till import Order, Till
from lore.memory import Memory
from lore.records import TokenUse
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.paid import PRICES, paying, total
from tests.gateway.proxied import HELLO
from tests.gateway.test_turning import HEADERS, PATH
from tests.gateway.upstream import Call, Says, Text, Upstream, upstream
from tests.waiting import eventually

MOST = TokenUse(1_000)
"""A dollar, as the prices of these tests are."""

INCOMING = Incoming("anthropic", PATH, "", {}, b"{}", 1_000)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    config = replace(load({}, home=tmp_path / "own").settings, prices=PRICES, daily_budget=3.0)
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


def set_aside(memory: Memory) -> float:
    memory.database.write(lambda _: None)
    return memory.day_budget().reserved_usd


def billed(memory: Memory) -> Bill:
    with Till(memory).open_bill(
        INCOMING, anthropic, Order("dear", MOST, "", streams=False)
    ) as bill:
        return bill


def test_money_is_set_aside_for_the_request_at_hand_and_what_was_taken_before(memory: Memory):
    bill = billed(memory)
    assert bill.further is not None
    assert set_aside(memory) == pytest.approx(1.0)
    bill.further.set_aside(Taken(TokenUse(100)), 0)
    assert set_aside(memory) == pytest.approx(0.1 + 1.0)
    bill.further.set_aside(Taken(TokenUse(250)), 0)
    assert set_aside(memory) == pytest.approx(0.25 + 1.0)
    memory.settle_request(bill.reserved, TokenUse(250))
    bill.further.close()
    assert set_aside(memory) == 0
    assert memory.day_budget().spent_usd == pytest.approx(0.25)


def test_what_is_set_aside_after_the_client_left_is_given_back(memory: Memory):
    bill = billed(memory)
    assert bill.further is not None
    memory.release_request(bill.reserved)
    bill.further.close()
    bill.further.set_aside(Taken(TokenUse(100)), 0)
    assert set_aside(memory) == 0


def test_a_request_for_which_there_is_no_money_leaves_none_set_aside(memory: Memory):
    bill = billed(memory)
    assert bill.further is not None
    with pytest.raises(BudgetSpent):
        bill.further.set_aside(Taken(TokenUse(3_000)), 0)
    assert set_aside(memory) == pytest.approx(3.0), "what was taken is not settled yet"
    memory.release_request(bill.reserved)
    assert set_aside(memory) == 0


def test_a_bill_is_given_back_if_anything_fails_before_it_is_handed_over(memory: Memory):
    order = Order("dear", MOST, "", streams=False)

    def fail() -> None:
        with Till(memory).open_bill(INCOMING, anthropic, order):
            raise StoreBusy(PATH)

    with pytest.raises(StoreBusy):
        fail()
    assert set_aside(memory) == 0


@pytest.mark.parametrize(
    "most",
    [
        TokenUse(10, output_tokens=5),
        TokenUse(cache_write_tokens=10, output_tokens=5),
        TokenUse(cache_write_1h_tokens=10, output_tokens=5),
    ],
)
def test_a_longer_prompt_is_longer_in_its_own_class(most: TokenUse):
    longer = lengthened(most, 1_000)
    assert longer.input_tokens > 260
    assert longer.output_tokens == 5
    kinds = ("fresh_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    assert sum(bool(getattr(longer, kind)) for kind in kinds) == 1
    assert lengthened(most, -5) == most


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream() as served:
        yield served


@pytest.mark.parametrize("stream", [True, False])
def test_a_search_ends_an_answer_whose_budget_is_spent(tmp_path: Path, up: Upstream, stream: bool):
    look = Call("recall", {"query": "tides"})
    body: dict[str, Any] = {**HELLO, "model": "dear", "stream": stream}
    with paying(tmp_path, up.url, daily_budget=0.001) as (memory, gateway):
        up.reply_with(Says(Text("Let me see."), look), Says(Text("Low.")))
        got = gateway.ask(PATH, body, HEADERS)
        assert got.status == (200 if stream else 429)
        assert b"rate_limit_error" in got.body
        assert b"set aside for requests under way" in got.body
        assert (b"Let me see." in got.body) is stream
        assert len(up.asked) == 1
        eventually(lambda: total(memory).requests == 1)
        assert total(memory).estimated == 0
        assert set_aside(memory) == 0


def test_searches_leave_no_money_set_aside(tmp_path: Path, up: Upstream):
    look = Call("recall", {"query": "tides"})
    with paying(tmp_path, up.url, daily_budget=1_000.0) as (memory, gateway):
        up.reply_with(*[Says(Text("Let me see."), look)] * 3, Says(Text("Low.")))
        got = gateway.ask(PATH, {**HELLO, "model": "dear"}, HEADERS)
        assert got.status == 200
        assert len(up.asked) == 4
        eventually(lambda: total(memory).requests == 1)
        assert set_aside(memory) == 0

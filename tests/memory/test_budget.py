"""Money: from the reservation of a request to its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import BudgetSpent, InvalidInput
from lore.memory import Memory
from lore.records import ModelPrice, NewMessage, Part, RequestCost, RequestOutcome, Spend, TokenUse
from lore.settings import Settings
from lore.store import spend
from tests.fakes import NOON, FixedClock
from tests.waiting import PATIENCE_S

PRICES = ("m input=1 output=10 cache_read=0.1 cache_write=1 window=200000",)
USED = TokenUse(1_000, 50_000, 0, 0, 100)
WITHOUT = TokenUse(1_000, 150_000, 0, 0, 100)
USD, WITHOUT_USD = 0.007, 0.017

Opener = Callable[..., Memory]


@pytest.fixture
def opened(tmp_path: Path, clock: FixedClock) -> Iterator[Opener]:
    """Return how to open the memory with other settings; it is closed at the end."""
    memories = []

    def open_with(**settings: object) -> Memory:
        config = replace(Settings(), home=tmp_path, prices=PRICES, **settings)  # type: ignore[arg-type]  # whatever a test sets
        memories.append(Memory.open(config=config, embedder=NoEmbedder(), now=clock))
        return memories[-1]

    yield open_with
    for memory in memories:
        memory.close()


def request(memory: Memory, session: str = "", *, model: str = "m") -> None:
    reserved = memory.budget.reserve_request(RequestCost(model, USED, session=session))
    memory.budget.settle_request(
        reserved, USED, RequestOutcome(1, busts=True, delay_s=2, without=WITHOUT)
    )
    memory.database.write(lambda _: None)


def background(memory: Memory, usd: float) -> None:
    entry = Spend(f"b{usd}", NOON, "background:observe", "haiku", {"input": 10, "output": 5}, usd)
    memory.database.write(lambda db: spend.add(db, entry))


def talk(memory: Memory, session: str, project: str) -> None:
    memory.capture(session, [NewMessage("user", (Part("text", "hello"),), NOON)], project=project)


def test_requests_are_added_up_by_model_with_what_was_saved(opened: Opener):
    memory = opened()
    for _ in range(3):
        request(memory)
    background(memory, 0.002)
    report = memory.budget.spend_report()
    line, own = report.lines
    assert (line.name, line.requests, line.busts, line.delayed) == ("m", 3, 3, 3)
    assert line.tokens == TokenUse(3_000, 150_000, 0, 0, 300)
    assert line.usd == pytest.approx(3 * USD)
    assert line.saved_usd == pytest.approx(3 * (WITHOUT_USD - USD))
    assert (own.name, own.background, own.tokens) == ("haiku", 1, TokenUse(10, output_tokens=5))
    assert report.throttle == {"events": 3, "totalDelayMs": 6_000}
    # What Lore's own work cost is not saved.
    assert report.total.saved_usd == pytest.approx(3 * (WITHOUT_USD - USD) - 0.002)


def test_requests_are_added_up_by_project_session_and_day(opened: Opener, clock: FixedClock):
    memory = opened()
    talk(memory, "one", "/code/a")
    talk(memory, "two", "/code/b")
    for session in ("one", "two", "two", ""):
        request(memory, session)
    by_project = memory.budget.spend_report(by="project")
    assert [(line.label, line.requests) for line in by_project.lines] == [
        ("/code/b", 2), ("", 1), ("/code/a", 1),
    ]  # fmt: skip
    assert sorted(line.requests for line in memory.budget.spend_report(by="session").lines) == [
        1,
        1,
        2,
    ]
    clock.advance(days=1)
    request(memory)
    assert memory.budget.spend_report().total.requests == 1
    days = memory.budget.spend_report(since="three days ago", by="day").lines
    assert [(day.name, day.requests) for day in days] == [("2026-05-13", 4), ("2026-05-14", 1)]


def test_what_a_forgotten_session_cost_stays_counted(opened: Opener):
    memory = opened()
    talk(memory, "one", "/code/a")
    request(memory, "one")
    memory.forget(session="one")
    (line,) = memory.budget.spend_report(by="session").lines
    assert (line.name, line.label) == ("", "")
    assert line.usd == pytest.approx(USD)


def test_an_export_brings_requests_along(opened: Opener, tmp_path: Path, clock: FixedClock):
    memory = opened()
    request(memory)
    memory.sessions.export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines()
    config = replace(Settings(), home=tmp_path / "other", prices=PRICES)
    with Memory.open(config=config, embedder=NoEmbedder(), now=clock) as other:
        other.sessions.import_lines(lines, trust=True)
        assert other.budget.spend_report().total == memory.budget.spend_report().total


def test_an_export_of_an_earlier_lore_comes_in(opened: Opener):
    line = (
        b'{"record":"spend","key":"k","at":1778673600000000,"session_id":null,"project_id":null,'
        b'"purpose":"background:observe","model":"m","usage":"{}","usd":0.5}'
    )
    header = b'{"lore":1,"exported_at":"2026-05-13T12:00:00+00:00","home":"elsewhere"}'
    memory = opened()
    assert memory.sessions.import_lines([header, line], trust=True).added == 1
    assert memory.budget.spend_report().total.usd == pytest.approx(0.5)
    wrong = line.replace(b'"usd":0.5', b'"usd":0.5,"layer":"two"').replace(b'"k"', b'"l"')
    with pytest.raises(InvalidInput, match="layer"):
        memory.sessions.import_lines([header, wrong], trust=True)


def test_a_budget_of_the_day_refuses_when_it_is_spent(opened: Opener, clock: FixedClock):
    memory = opened(daily_budget=0.01)
    request(memory)
    request(memory)
    with pytest.raises(BudgetSpent):
        request(memory)
    assert memory.budget.day_budget().budget_usd == 0.01
    clock.advance(seconds=10)
    assert memory.budget.spend_pressure().exceeds
    assert opened().budget.day_budget().budget_usd is None


def test_what_is_released_is_there_for_others(opened: Opener):
    memory = opened(daily_budget=0.005)
    memory.budget.release_request(memory.budget.reserve_request(RequestCost("m", USED)))
    memory.database.write(lambda _: None)
    request(memory)


def test_the_price_of_a_model_is_told_without_waiting(opened: Opener):
    memory = opened()
    memory.budget.load_prices()
    assert memory.budget.find_model_price("m") == ModelPrice(1.0, 10.0, 0.1, 1.0, 2.0, 200_000)


def test_counters_are_those_of_this_process(opened: Opener):
    memory = opened()
    request(memory)
    (counted,) = memory.budget.spend_counters()
    assert (counted.model, counted.requests, counted.delay_ms) == ("m", 1, 2_000)
    assert opened().budget.spend_counters() == []


def test_the_past_of_a_project_is_told_by_turns_and_gaps(opened: Opener, clock: FixedClock):
    memory = opened()
    for name, project, count in (
        ("one", "/code/a", 3),
        ("two", "/code/a", 2),
        ("far", "/code/b", 4),
    ):
        said = []
        for turn in range(count):
            at = NOON + timedelta(minutes=10 * turn)
            said.append(NewMessage("user", (Part("text", f"do {name} {turn}"),), at))
            # Two messages of one turn.
            for part in ("thinking", "done"):
                later = at + timedelta(seconds=30)
                said.append(
                    NewMessage("assistant", (Part("text", f"{part} {name} {turn}"),), later)
                )
        memory.capture(name, said, project=project)
    assert memory.budget.past_turns(project="/code/a").lengths == (), "they may go on"
    clock.advance(hours=3)
    past = memory.budget.past_turns(project="/code/a")
    assert sorted(past.lengths) == [2, 3]
    assert past.gaps_s == (600.0, 600.0, 600.0)
    assert sorted(memory.budget.past_turns().lengths) == [2, 3, 4]
    assert memory.budget.past_turns(project="/code/unheard-of").lengths == ()


def test_a_secret_in_the_name_of_a_model_is_not_written(opened: Opener, tmp_path: Path):
    memory = opened()
    secret = "sk-ant-api03-" + "Zq7Lr2Xw9Tk4Vb8N" * 5 + "AA"
    request(memory, model=f"ollama/{secret}")
    (line,) = memory.budget.spend_report().lines
    assert secret not in line.name
    assert secret not in memory.budget.spend_counters()[0].model
    memory.database.checkpoint()
    assert secret.encode() not in (tmp_path / "memory.db").read_bytes()


def test_money_belongs_to_a_session_whose_name_is_stored_without_its_secret(opened: Opener):
    memory, secret = opened(), "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    talk(memory, secret, f"/code/{secret}")
    request(memory, secret)
    reserved = memory.budget.reserve_request(RequestCost("m", USED, project=f"/code/{secret}"))
    memory.budget.settle_request(reserved, USED)
    memory.database.write(lambda _: None)
    [session] = memory.sessions()
    names = {line.name for line in memory.budget.spend_report(by="session").lines}
    assert names == {session.id, ""}
    assert {line.name for line in memory.budget.spend_report(by="project").lines} == {
        session.project_id
    }


def test_the_price_of_a_model_knows_that_of_longer_prompts(opened: Opener):
    memory = opened()
    assert memory.budget.load_prices(wait_s=PATIENCE_S)
    price = memory.budget.find_model_price("claude-sonnet-4-5", provider="anthropic")
    assert price is not None
    assert price.at(200_001).cache_read_usd == pytest.approx(2 * price.at(200_000).cache_read_usd)

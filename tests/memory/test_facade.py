"""Memory as a whole: opening, closing, former names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lore
from lore import records
from lore.embed.embedder import NoEmbedder
from lore.errors import BudgetSpent, NotFound, StoreError
from lore.memory import Memory, examine, facade
from lore.memory.facade import closed_memory
from lore.records import RequestCost, TokenUse
from lore.settings import load
from tests.fakes import FakeEmbedder


def test_the_library_works_as_the_readme_says(tmp_path: Path):
    with lore.Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("Deploys go through the blue/green script in ops/deploy.sh")
        hits = list(memory.recall("how do we deploy?"))
    assert hits[0].text == "Deploys go through the blue/green script in ops/deploy.sh"
    assert hits[0].why


@pytest.mark.only_sqlite("a home without a database")
def test_missing_home_is_not_created_for_reading(tmp_path: Path):
    with pytest.raises(NotFound, match="no memory"):
        Memory.open(home=tmp_path / "none", embedder=NoEmbedder(), create=False)
    assert not (tmp_path / "none").exists()


def test_a_closed_memory_says_so(tmp_path: Path):
    memory = Memory.open(home=tmp_path, embedder=NoEmbedder())
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.store("x")


def test_embedder_of_the_caller_stays_open(tmp_path: Path):
    embedder = FakeEmbedder()
    with Memory.open(home=tmp_path, embedder=embedder):
        pass
    assert not embedder.closed


@pytest.mark.only_sqlite("a home without a database")
def test_doctor_runs_all_checks(tmp_path: Path):
    checks = {check.name: check for check in examine(home=tmp_path / "none")}
    assert checks["database"].state == "degraded"
    with Memory.open(home=tmp_path, embedder=NoEmbedder()):
        pass
    names = [check.name for check in examine(home=tmp_path)]
    assert names == [
        "versions", "home", "disk", "files", "database", "keywords", "vectors", "embedder",
        "sessions", "jobs",
    ]  # fmt: skip


def test_former_names_lead_to_methods_of_the_parts(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("x marks the spot")
        former = {name: getattr(memory, name) for name in ("stats", "standing", "let_go", "update")}
        assert former["stats"]().fragments == 1
        assert former["standing"] == memory.search.standing_instructions
        assert former["let_go"] == memory.maintenance.clear_caches
        assert former["update"] == memory.knowledge.update
        assert not hasattr(memory, "nonsense")
        assert not hasattr(memory, "cycle_lock")


def test_every_former_name_leads_to_a_method(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        for name in facade._PART_METHODS:
            assert getattr(memory, name) is not None


def test_some_parts_can_be_called(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("x marks the spot")
        assert [hit.text for hit in memory.search("spot")] == ["x marks the spot"]
        assert memory.sessions() == []
        assert memory.digest().sessions == 0


def test_records_are_found_in_the_package_by_their_former_names():
    for former, name in lore._RENAMED.items():
        assert getattr(lore, former) is getattr(records, name)


MODEL = "claude-sonnet-4-5"


def test_a_closed_memory_touches_no_file(tmp_path: Path):
    home = tmp_path / "home"
    memory = closed_memory(load({}, home=home).settings)
    with pytest.raises(StoreError):
        memory.maintenance.stats()
    assert not home.exists()


def test_a_closed_memory_counts_money_up_to_the_budget(tmp_path: Path):
    settings = replace(load({}, home=tmp_path).settings, daily_budget=0.01)
    memory = closed_memory(settings)
    used = TokenUse(fresh_tokens=10_000)
    reserved = memory.budget.reserve_request(RequestCost(MODEL, used, provider="anthropic"))
    assert memory.budget.settle_request(reserved, used) == pytest.approx(0.03)
    with pytest.raises(BudgetSpent):
        memory.budget.reserve_request(RequestCost(MODEL, used, provider="anthropic"))


def test_what_is_remembered_has_its_vector_at_once(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        memory.remember("Deploys go through ops/deploy.sh")
        assert memory.maintenance.stats().vectors == 1

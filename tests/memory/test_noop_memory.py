from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lore.errors import BudgetSpent, StoreError
from lore.memory.noop_memory import closed_memory
from lore.records import TokenUse
from lore.settings import load

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
    reserved = memory.budget.reserve_request(MODEL, used, provider="anthropic")
    assert memory.budget.settle_request(reserved, used) == pytest.approx(0.03)
    with pytest.raises(BudgetSpent):
        memory.budget.reserve_request(MODEL, used, provider="anthropic")

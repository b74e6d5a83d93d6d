"""A budget that is changed holds for the next request."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lore.embed.none import NoEmbedder
from lore.errors import BudgetSpent
from lore.memory import Memory
from lore.memory.allowing import Allowance
from lore.records import TokenUse
from lore.settings import USER_FILE, load

CENT = TokenUse(10_000)
PRICES = '[prices."m"]\ninput = 1\noutput = 10\nwindow = 200000\n'


def test_a_budget_that_is_raised_holds_without_a_restart(tmp_path: Path):
    file = tmp_path / USER_FILE
    file.write_text(f"daily_budget = 0.01\n{PRICES}")
    with Memory.open(config=load({}, home=tmp_path).settings, embedder=NoEmbedder()) as memory:
        memory.settle_request(memory.reserve_request("m", CENT), CENT)
        with pytest.raises(BudgetSpent):
            memory.reserve_request("m", CENT)
        file.write_text(f"daily_budget = 10.0\n{PRICES}")
        memory.release_request(memory.reserve_request("m", CENT))
        assert memory.day_budget().budget_usd == 10.0


def test_a_file_in_error_leaves_the_budget_as_it_was(tmp_path: Path):
    file = tmp_path / USER_FILE
    file.write_text("daily_budget = 2.0\n")
    allowed = Allowance(load({}, home=tmp_path).settings)
    file.write_text("daily_budget = much\n")
    assert allowed() == 2.0
    file.write_text("daily_budget = 3.0\n")
    assert allowed() == 3.0
    file.unlink()
    assert allowed() is None


def test_no_thread_is_told_a_budget_from_before_while_another_looks(tmp_path: Path):
    file, threads = tmp_path / USER_FILE, 8
    file.write_text("daily_budget = 1.0\n")
    allowed = Allowance(load({}, home=tmp_path).settings)
    together = threading.Barrier(threads)

    def ask(_number: int) -> float | None:
        together.wait()
        return allowed()

    with ThreadPoolExecutor(threads) as pool:
        for usd in range(2, 12):
            file.write_text(f"daily_budget = {usd}.0\nprices = []\n")
            assert set(pool.map(ask, range(threads))) == {float(usd)}

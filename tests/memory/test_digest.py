from __future__ import annotations

from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from tests.digest.conversations import capture_messages


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as opened:
        yield opened


def test_a_session_is_distilled_once(memory: Memory):
    capture_messages(memory, 40)
    assert memory.distill("talk")
    assert memory.distill("talk") == []


def test_a_session_that_is_not_there_is_not_found(memory: Memory):
    with pytest.raises(NotFound):
        memory.distill("none")


def test_nothing_was_spent_and_no_cycle_ran_in_a_new_memory(memory: Memory):
    assert memory.budget.spent_today().spent_usd == 0
    assert memory.digest.cycles() == []
    assert memory.knowledge.conflicts() == []


def test_what_is_no_phase_is_refused(memory: Memory):
    with pytest.raises(InvalidInput):
        memory.digest.consolidate(phases=["nonsense"])

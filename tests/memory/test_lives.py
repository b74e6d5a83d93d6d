"""What this process knows of sessions: nothing of it outlives what was forgotten or silenced."""

from __future__ import annotations

import pytest

from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Injection
from tests.fakes import FakeEmbedder
from tests.memory.test_composing import TALK, USED, memory, said
from tests.memory.test_conversing import talk

__all__ = ["memory"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_what_is_forgotten_is_not_said_again(memory: Memory, elsewhere: bool):
    composer = Composer(memory)
    kept = memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    entries = talk(2)
    note = Injection("The staging port is 5436.")
    first = composer.compose(TALK, said(entries[:1]), note=note)
    composer.use(TALK, first)
    assert "5436" in first.knowledge
    if elsewhere:
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
            other.forget(id=kept.id)
    else:
        memory.forget(id=kept.id)
    again = composer.compose(TALK, said(entries[:5]))
    assert "5436" not in again.knowledge
    assert not again.notes
    composer.use(TALK, again)
    composer.settle(TALK, said(entries[:5]), again, USED)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    held = composer.desk.held(TALK)
    assert "5436" not in f"{held.knowledge} {held.notes}"

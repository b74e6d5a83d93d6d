"""Memory that is locked, damaged, full or missing: every request passes as its client sent it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.locking import locked
from tests.gateway.test_turning import HERE, life
from tests.gateway.upstream import Call, Says, Text, Upstream, upstream

LOCKED_S = 600.0
"""So long a write waits for a lock in these tests: what waits for one hangs."""


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream() as served:
        yield served
        assert not served.refused


def test_answers_that_search_end_while_the_store_is_locked(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, store_busy_timeout_s=LOCKED_S) as talk:
        talk.memory.remember("The staging port is 5436", project=HERE)
        look = Call("recall", {"query": "staging port"})
        talk.ask("Hello.")
        with locked(talk.memory.database.path):
            for n in range(6):
                up.reply_with(Says(Text("Let me see."), look), Says(Text("It is 5436.")))
                told = talk.ask(f"Which port does staging have? {n}")
                assert told["content"][-1]["text"].endswith("It is 5436.")
                assert not talk.got.header("x-lore-degraded")

"""Lore's own access keys are secrets like any other: none is ever stored."""

from __future__ import annotations

from pathlib import Path

from lore.http.auth import ensure_local_key
from lore.memory import Memory
from tests.fakes import FakeEmbedder


def test_an_access_key_of_lore_is_never_stored(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        keys = [
            ensure_local_key(tmp_path),
            *(memory.access.create_key(f"key {i}")[0] for i in range(50)),
        ]
        for key in keys:
            id_ = memory.store(f"the agent printed {key} and went on")
            (reading,) = memory.read([id_])
            assert reading.text.startswith("the agent printed [secret:lore:")
            assert reading.text.endswith("] and went on")

from __future__ import annotations

from pathlib import Path

import pytest

import lore
from lore.embed.none import NoEmbedder
from lore.errors import NotFound, StoreError
from lore.memory import Memory, examine
from tests.fakes import FakeEmbedder


def test_the_library_works_as_the_readme_says(tmp_path: Path):
    with lore.Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("Deploys go through the blue/green script in ops/deploy.sh")
        hits = list(memory.recall("how do we deploy?"))
    assert hits[0].text == "Deploys go through the blue/green script in ops/deploy.sh"
    assert hits[0].why


def test_a_home_that_is_not_there_is_not_made_for_reading(tmp_path: Path):
    with pytest.raises(NotFound, match="no memory"):
        Memory.open(home=tmp_path / "none", embedder=NoEmbedder(), create=False)
    assert not (tmp_path / "none").exists()


def test_a_closed_memory_says_so(tmp_path: Path):
    memory = Memory.open(home=tmp_path, embedder=NoEmbedder())
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.store("x")


def test_an_embedder_that_the_caller_brought_stays_open(tmp_path: Path):
    embedder = FakeEmbedder()
    with Memory.open(home=tmp_path, embedder=embedder):
        pass
    assert not embedder.closed


def test_doctor_looks_at_everything_and_names_what_is_missing(tmp_path: Path):
    checks = {check.name: check for check in examine(home=tmp_path / "none")}
    assert checks["database"].state == "degraded"
    with Memory.open(home=tmp_path, embedder=NoEmbedder()):
        pass
    names = [check.name for check in examine(home=tmp_path)]
    assert names == [
        "versions", "home", "disk", "files", "database", "keywords", "vectors", "embedder",
        "sessions", "jobs",
    ]  # fmt: skip

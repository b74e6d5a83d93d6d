from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from tests.cli.conftest import Lore
from tests.fakes import FakeEmbedder, FixedClock
from tests.homes import copy_home, make_once


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of `lore demo`, digested: a copy for the tests of one process."""

    def make(folder: Path) -> None:
        home = folder / "home"
        Lore(home)("demo", "--keep", str(home), "--json").works()
        with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
            memory.digest()

    made = make_once(tmp_path_factory, "demo", make) / "home"
    return copy_home(made, tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture
def demo(demo_home: Path, tmp_path: Path) -> Iterator[Memory]:
    """Return a memory of its own with what `lore demo` stores."""
    copy_home(demo_home, tmp_path / "demo")
    with Memory.open(home=tmp_path / "demo", embedder=FakeEmbedder()) as opened:
        yield opened


@pytest.fixture
def memory(new_home: Path) -> Iterator[Memory]:
    """Return a fresh memory with a fake embedder."""
    clock = FixedClock()
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened

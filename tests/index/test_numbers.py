from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.index import numbers

NUMBERS = st.lists(st.integers(0, 40) | st.integers(0, 2**62))


@given(NUMBERS)
def test_unique_numbers_are_those_of_numpy(values: list[int]):
    array = np.array(values, np.int64)
    assert numbers.unique(array).tolist() == np.unique(array).tolist()


@given(NUMBERS, NUMBERS)
def test_numbers_among_others_are_those_of_numpy(values: list[int], wanted: list[int]):
    array = np.array(values, np.int64)
    assert numbers.is_among(array, wanted).tolist() == np.isin(array, wanted).tolist()


RECALL = """
import sys
from pathlib import Path
from lore.memory import Memory
from lore.settings import Settings
from tests.fakes import FakeEmbedder
with Memory.open(config=Settings(home=Path(sys.argv[1])), embedder=FakeEmbedder()) as memory:
    memory.remember("Boats float on water")
    assert memory.recall("Do boats float?").hits
    assert memory.search.search("boats", deep=True)
    memory.prompts.find_candidates("Do boats float on water?")
assert "numpy.ma" not in sys.modules
"""


def test_a_recall_does_without_masked_arrays(tmp_path: Path):
    command = [sys.executable, "-c", RECALL, str(tmp_path / "home")]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]

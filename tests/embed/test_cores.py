import os
from pathlib import Path

import pytest

from lore.embed.cores import count_cores


@pytest.mark.parametrize("limit", ["max 100000", "", "nonsense"])
def test_without_a_quota_the_affinity_counts(tmp_path: Path, limit: str) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert count_cores(tmp_path) == free == count_cores(tmp_path / "missing")


@pytest.mark.parametrize("limit", ["100000 100000", "50000 100000"])
def test_a_quota_of_a_core_or_less_is_one_core(tmp_path: Path, limit: str) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    assert count_cores(tmp_path) == 1

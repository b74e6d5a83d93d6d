"""The model runs without telling anybody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lore.embed.runtime import SWITCH, count_cores


@pytest.mark.parametrize("limit", ["max 100000", "", "nonsense"])
def test_without_a_quota_the_affinity_counts(tmp_path: Path, limit: str) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert count_cores(tmp_path) == free == count_cores(tmp_path / "missing")


@pytest.mark.parametrize("limit", ["100000 100000", "50000 100000"])
def test_a_quota_of_a_core_or_less_is_one_core(tmp_path: Path, limit: str) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    assert count_cores(tmp_path) == 1


_QUIET_ANYWAY = ("CI", "TF_BUILD", "GITHUB_ACTIONS", "ORT_RUNNING_UNIT_TESTS", SWITCH)
"""Where one of these is set, the runtime reports nothing by itself."""

EMBED = """
import sys
from pathlib import Path
from lore.embed.models import find_model
from lore.embed.encoder import Encoder, EncoderOptions
options = EncoderOptions("float32", Path(sys.argv[2]), threads=1, windows=1)
Encoder(Path(sys.argv[1]), find_model("local", "all-MiniLM-L6-v2"), options).encode(["harbour"])
"""


def test_the_runtime_leaves_no_reports_in_the_home_of_a_user(tmp_path: Path, weights: Path):
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    cache.mkdir()
    environ = {name: value for name, value in os.environ.items() if name not in _QUIET_ANYWAY}
    environ |= {"HOME": str(home)}
    environ.pop("XDG_CACHE_HOME", None)
    subprocess.run([sys.executable, "-c", EMBED, str(weights), str(cache)], env=environ, check=True)
    assert not list(home.rglob("*"))

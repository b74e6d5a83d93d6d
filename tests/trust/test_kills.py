"""SIGKILL at any instant, and many processes at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KILLS = int(os.environ.get("LORE_TEST_KILLS", "1000"))


def crowd(*arguments: object) -> dict[str, Any]:
    """Run processes at once and return their report."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.crowd", *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr.decode()[-3_000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("seed", [1, 2])
def test_no_acknowledged_write_is_lost_when_processes_are_killed_at_any_instant(
    tmp_path: Path, seed: int
) -> None:
    report = crowd("kill", tmp_path / "home", KILLS // 2, seed)
    assert report["problems"] == []
    assert report["kills"] >= KILLS // 2
    assert report["acknowledged"] > KILLS / 20, "too few writes to say anything"


@pytest.mark.parametrize(("processes", "each"), [(2, 60), (8, 25)])
def test_processes_that_write_and_read_at_once_lose_nothing_and_see_no_lock(
    tmp_path: Path, processes: int, each: int
) -> None:
    report = crowd("contend", tmp_path / "home", processes, each)
    assert report == {"failed": 0, "lost": 0, "doubled": 0, "problems": []}


def test_eight_processes_open_an_empty_home_at_the_same_moment(tmp_path: Path) -> None:
    for attempt in range(3):
        report = crowd("contend", tmp_path / f"home{attempt}", 8, 1)
        assert report == {"failed": 0, "lost": 0, "doubled": 0, "problems": []}

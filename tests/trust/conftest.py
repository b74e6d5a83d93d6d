"""What several attacks need."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import eventually


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("mounting a small disk needs root")
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "lore-test", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow mounting")
    yield folder
    # A daemon that was stopped is still in its home for an instant.
    eventually(lambda: subprocess.run(["umount", str(folder)], check=False).returncode == 0)

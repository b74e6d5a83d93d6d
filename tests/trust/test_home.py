"""The home stays private and no odd file in it hangs a command."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import StoreDamaged
from lore.memory import Memory

SMALL_FILES = ("lore.pid", "status.json", "redaction.key", "server.port", "server.json")


def lore(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "LORE_HOME": str(home), "HOME": str(home.parent)}
    command = [sys.executable, "-m", "lore.cli", *words]
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_setup_as_the_first_command_makes_a_private_home(tmp_path: Path) -> None:
    done = lore(tmp_path / "home", "setup", "claude-code")
    assert done.returncode == 0, done.stderr
    assert mode(tmp_path / "home") == 0o700


def test_a_loose_home_is_tightened_with_a_notice(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        assert "is private now" in memory.notice
    assert mode(home) == 0o700


def test_an_empty_database_beside_backups_is_no_new_memory(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        memory.store("a fact")
        memory.maintenance.backup()
    (home / "memory.db").write_bytes(b"")
    with pytest.raises(StoreDamaged) as raised:
        Memory.open(home=home, embedder=NoEmbedder())
    assert "lore restore" in raised.value.hint


@pytest.mark.parametrize("name", SMALL_FILES)
@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "socket"])
def test_no_odd_file_hangs_a_command(tmp_path: Path, name: str, kind: str) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    path = home / name
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    for words in (["status"], ["remember", "a fact"]):
        assert "Traceback" not in lore(home, *words).stderr

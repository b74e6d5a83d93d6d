"""The home stays private and no odd file in it hangs a command."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import LoreError, StoreDamaged
from lore.memory import Memory

STATUS, REMEMBER = ("status",), ("remember", "a fact")
READERS = {
    "lore.pid": (STATUS, REMEMBER),
    "status.json": (STATUS, REMEMBER, ("statusline",)),
    "redaction.key": (STATUS, REMEMBER),
    "server.port": (STATUS, REMEMBER),
    "server.json": (STATUS, REMEMBER),
    "lore.log": (("logs",),),
    "lore.log.1": (("logs",),),
    "config.toml": (STATUS,),
}
"""Files of a home, and commands that read them."""
ODD_KINDS = ("fifo", "link", "folder", "socket")


def lore(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command, which may start no daemon of its own accord."""
    places = {"LORE_HOME": str(home), "HOME": str(home.parent), "LORE_EMBED_PROVIDER": "none"}
    return subprocess.run(
        [sys.executable, "-m", "lore.cli", *words],
        env={**os.environ, **places, "LORE_MCP_START": "false", **environ},
        input="",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_forked(
    folder: Path, commands: list[tuple[str, tuple[str, ...]]]
) -> list[tuple[str, list[str], str]]:
    """Run commands one after another; a command that hangs is the one after the last output."""
    settings = {"LORE_EMBED_PROVIDER": "none", "LORE_MCP_START": "false"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.forked_commands"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **settings, "HOME": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def put_odd_file(path: Path, kind: str) -> None:
    """Put something in the place of a file that cannot be read, or for ever."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))


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


@pytest.mark.parametrize("kind", ODD_KINDS)
def test_no_odd_file_hangs_a_command(tmp_path: Path, kind: str) -> None:
    commands: list[tuple[str, tuple[str, ...]]] = []
    for name, readers in READERS.items():
        home = tmp_path / name
        home.mkdir(mode=0o700)
        put_odd_file(home / name, kind)
        commands += [(str(home), words) for words in readers]
    done = run_forked(tmp_path, commands)
    assert [(place, tuple(words)) for place, words, _ in done] == commands
    for place, words, stderr in done:
        assert "Traceback" not in stderr, (place, words, stderr)


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_no_odd_file_hangs_a_daemon_or_those_who_ask_it(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    for name in ("lore.log", "greeting.json"):
        put_odd_file(home / name, kind)
    started = lore(home, "up", "--detach", LORE_SERVER_PORT="0")
    try:
        assert started.returncode == 0, started.stderr
        if kind != "folder":
            assert "started" in lore(home, "logs").stdout
        assert lore(home, "mcp").returncode == 0
        for name in ("server.json", "access.key"):
            (home / name).rename(tmp_path / name)
            put_odd_file(home / name, kind)
            assert "Traceback" not in lore(home, "recall", "a fact").stderr
            assert lore(home, "hook", "UserPromptSubmit").returncode == 0
            assert lore(home, "mcp").returncode == 0
            (home / name).rmdir() if kind == "folder" else (home / name).unlink()
            (tmp_path / name).rename(home / name)
    finally:
        assert lore(home, "down").returncode == 0


@pytest.mark.parametrize("kind", ODD_KINDS)
def test_an_odd_project_page_is_refused(tmp_path: Path, kind: str) -> None:
    home, folder = tmp_path / "home", tmp_path / "code"
    (folder / ".git").mkdir(parents=True)
    put_odd_file(folder / ".lore.md", kind)
    with (
        Memory.open(home=home, embedder=NoEmbedder()) as memory,
        pytest.raises((LoreError, OSError)),
    ):
        memory.knowledge.read_shared(str(folder), folder / ".lore.md")

"""The lock of a home, taken by real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lore.daemon import daemon_lock
from lore.errors import AlreadyRunning
from lore.proxy.address import LOCK_FILE
from tests.fakes import NOON

HOLDING = """
import sys, time
from datetime import datetime, UTC
from pathlib import Path
from lore.proxy.address import LOCK_FILE
from lore.daemon import daemon_lock
held = daemon_lock.take_lock(Path(sys.argv[1]), now=datetime.now(UTC), version="9.9")
print("held", flush=True)
time.sleep(60)
"""


def hold(home: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(home)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    return process


def test_one_process_holds_the_lock_and_others_learn_its_pid(tmp_path: Path):
    with hold(tmp_path) as process:
        holder = daemon_lock.find_holder(tmp_path)
        assert holder
        assert (holder.pid, holder.version) == (process.pid, "9.9")
        with pytest.raises(AlreadyRunning, match=f"pid {process.pid}"):
            daemon_lock.take_lock(tmp_path, now=NOON, version="1")
        process.kill()


def test_the_lock_of_a_killed_process_does_not_count(tmp_path: Path):
    with hold(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
    assert (tmp_path / LOCK_FILE).read_text()
    assert daemon_lock.find_holder(tmp_path) is None
    held = daemon_lock.take_lock(tmp_path, now=NOON, version="1")
    assert (tmp_path / LOCK_FILE).read_text().startswith(f"{os.getpid()}\n2026-")
    held.release()
    assert daemon_lock.find_holder(tmp_path) is None


def test_the_lock_file_is_private(tmp_path: Path):
    held = daemon_lock.take_lock(tmp_path, now=NOON, version="1")
    assert held.path.stat().st_mode & 0o777 == 0o600
    held.release()


def test_a_lock_file_that_was_removed_or_replaced_is_noticed(tmp_path: Path):
    held = daemon_lock.take_lock(tmp_path, now=NOON, version="1")
    assert held.is_in_place()
    held.path.unlink()
    assert not held.is_in_place()
    held.path.write_text("another")
    assert not held.is_in_place()
    held.release()


def test_a_link_in_place_of_the_lock_file_is_not_followed(tmp_path: Path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"):
        daemon_lock.take_lock(tmp_path, now=NOON, version="1")
    assert (tmp_path / "precious").read_text() == "kept"


GARBLED = ["", "garbage", "12\nno date\n1\n", "-1\n2026-01-01\n1\n", "0\n2026-01-01\n1\n"]


@pytest.mark.parametrize("content", [*GARBLED, "\0" * 300])
def test_an_invalid_lock_file_names_no_holder(tmp_path: Path, content: str):
    with hold(tmp_path) as process:
        (tmp_path / LOCK_FILE).write_text(content)
        assert daemon_lock.find_holder(tmp_path) is None
        process.kill()


def test_only_the_lock_holder_is_recognised(tmp_path: Path):
    (tmp_path / "other").mkdir()
    with hold(tmp_path) as process, hold(tmp_path / "other") as neighbour:
        assert daemon_lock.is_held_by(tmp_path, process.pid)
        assert not daemon_lock.is_held_by(tmp_path, os.getpid())
        assert not daemon_lock.is_held_by(tmp_path, 2**30)
        if Path("/proc").is_dir():
            assert not daemon_lock.is_held_by(tmp_path, neighbour.pid)
        process.kill()
        neighbour.kill()


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no 'ps' here")
def test_without_proc_a_holder_is_recognised_by_its_command(tmp_path: Path):
    nowhere = tmp_path / "no such folder"
    with hold(tmp_path) as process, subprocess.Popen(["sleep", "60"]) as stranger:
        assert daemon_lock.is_held_by(tmp_path, process.pid, nowhere)
        assert not daemon_lock.is_held_by(tmp_path, stranger.pid, nowhere)
        process.kill()
        stranger.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_the_folder_of_a_read_only_home_is_locked(tmp_path: Path):
    held = daemon_lock.lock_folder(tmp_path)
    try:
        holder = daemon_lock.find_holder(tmp_path)
        assert holder
        assert (holder.pid, holder.holds_folder_lock) == (os.getpid(), True)
        assert daemon_lock.is_held_by(tmp_path, os.getpid())
        assert held.is_in_place()
        with pytest.raises(AlreadyRunning):
            daemon_lock.lock_folder(tmp_path)
        assert not list(tmp_path.iterdir())
    finally:
        held.release()
    assert daemon_lock.find_holder(tmp_path) is None

"""Homes that are made once and copied, because filling one takes seconds."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest


def copy_home(source: Path, target: Path) -> Path:
    """Copy the home of a closed memory; model files are linked, since nobody changes them."""

    def copy(one: str, other: str) -> None:
        (os.link if Path(one).parent.parent.name == "models" else shutil.copy2)(one, other)

    shutil.copytree(source, target, copy_function=copy)
    return target


def keep_handshake(home: Path) -> None:
    """Keep the MCP handshake in a home, as after a first start of its daemon.

    A daemon that has to make it loads the MCP SDK for that: half a second of the processor.
    """
    from lore.mcp.handshake_builder import ensure_saved
    from lore.settings import load

    home.mkdir(mode=0o700, exist_ok=True)
    ensure_saved(load({}, home=home).settings)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of all processes of this test run."""
    own = factory.getbasetemp()
    return own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Make a folder once for all processes of a test run; it is only to be copied."""
    shared = shared_folder(factory)
    folder = shared / f"once-{name}"
    with (shared / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(dir=shared))
            make(unfinished)
            unfinished.rename(folder)
    return folder

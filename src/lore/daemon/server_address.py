"""The file with the server's address, which clients on this machine read (see `lore.proxy`)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lore.config_files import read_small_file, replace_file
from lore.proxy.address import SERVER_FILE, url_of

PORT_FILE = "server.port"
"""Stores the configured port that was taken, and the port that was used instead."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the server of a home listens, and its process.

    `hook_ms` is the time limit of a hook: hooks have no time to read settings. `greeting`
    identifies the cached MCP handshake of the server.
    """

    host: str
    port: int
    pid: int
    version: str
    hook_ms: int = 0
    greeting: str = ""

    @property
    def url(self) -> str:
        """Return the address as a URL."""
        return url_of(self.host, self.port)


def write(home: Path, listening: ServerAddress) -> None:
    """Write the file atomically, readable by the owner only."""
    replace_file(home / SERVER_FILE, json.dumps(asdict(listening)).encode())


def clear(home: Path) -> None:
    """Remove the file of a daemon that was killed; the caller holds the lock.

    That daemon may have had the same pid: in a container every daemon gets the same one.
    """
    with suppress(OSError):
        (home / SERVER_FILE).unlink()


def remove(home: Path) -> None:
    """Remove the file, unless it belongs to another daemon by now."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        if json.loads(read_small_file(home / SERVER_FILE))["pid"] == os.getpid():
            (home / SERVER_FILE).unlink()


def find_last_port(home: Path, configured: int) -> int | None:
    """Return the port that the server used when the configured one was taken."""
    try:
        then, port = map(int, read_small_file(home / PORT_FILE)[:20].split())
    except (OSError, ValueError):
        return None
    return port if then == configured and 0 < port < 65_536 else None


def store_port(home: Path, configured: int, port: int) -> None:
    """Store a port for the next start, if possible, because agents know it by now."""
    if find_last_port(home, configured) != port:
        with suppress(OSError):
            replace_file(home / PORT_FILE, f"{configured} {port}\n".encode())

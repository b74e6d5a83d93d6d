"""The address of a home's server, in a file that whoever wants to reach it reads (`bridges`)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lore.proxy.address import SERVER_FILE, url_of

PORT_FILE = "server.port"
"""Which port a server could not have, and where it listened instead."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the server of a home listens, on a host that can be connected to, and for whom.

    `hook_ms` is how long a hook may take: hooks have no time to read settings. `greeting` is the
    mark of what the server says of itself.
    """

    host: str
    port: int
    pid: int
    version: str
    hook_ms: int = 0
    greeting: str = ""

    @property
    def url(self) -> str:
        """Return the address as a browser takes it."""
        return url_of(self.host, self.port)


def write(home: Path, listening: Listening) -> None:
    """Say where the server listens, whole or not at all, to the owner only."""
    _put(home / SERVER_FILE, json.dumps(asdict(listening)))


def clear(home: Path) -> None:
    """Remove what a daemon that was killed said; whoever calls this has just taken the lock.

    Its pid may be this one's: in a container each daemon gets the same.
    """
    with suppress(OSError):
        (home / SERVER_FILE).unlink()


def remove(home: Path) -> None:
    """Take back what this process said, unless it is another daemon's file by now."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        if json.loads((home / SERVER_FILE).read_bytes())["pid"] == os.getpid():
            (home / SERVER_FILE).unlink()


def find_last_port(home: Path, wanted: int) -> int | None:
    """Return the port that the server used when the one it wanted was taken."""
    try:
        then, port = map(int, (home / PORT_FILE).read_bytes()[:20].split())
    except (OSError, ValueError):
        return None
    return port if then == wanted and 0 < port < 65_536 else None


def keep_port(home: Path, wanted: int, port: int) -> None:
    """Remember a port for the next start, where that is possible: agents know it by now."""
    if find_last_port(home, wanted) != port:
        with suppress(OSError):
            _put(home / PORT_FILE, f"{wanted} {port}\n")


def _put(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
            file.write(text.encode())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)

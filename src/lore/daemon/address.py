"""The address of a home's server, in a file that whoever wants to reach it reads."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lore.bridges.address import SERVER_FILE
from lore.daemon import lock


@dataclass(frozen=True, slots=True)
class Address:
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
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def find(home: Path) -> Address | None:
    """Return where the server of a home listens; what a dead daemon left is not believed."""
    said = _read(home)
    holder = lock.find_holder(home)
    return said if said is not None and holder is not None and holder.pid == said.pid else None


def write(home: Path, address: Address) -> None:
    """Say where the server listens, whole or not at all, to the owner only."""
    part = home / f"{SERVER_FILE}.part-{os.getpid()}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
            file.write(json.dumps(asdict(address)).encode())
        part.replace(home / SERVER_FILE)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def clear(home: Path) -> None:
    """Remove what a daemon that was killed said; whoever calls this has just taken the lock.

    Its pid may be this one's: in a container each daemon gets the same.
    """
    with suppress(OSError):
        (home / SERVER_FILE).unlink()


def remove(home: Path) -> None:
    """Take back what this process said, unless it is another daemon's file by now."""
    said = _read(home)
    if said is not None and said.pid == os.getpid():
        with suppress(OSError):
            (home / SERVER_FILE).unlink()


def _read(home: Path) -> Address | None:
    try:
        tree = json.loads((home / SERVER_FILE).read_bytes())
        return Address(
            str(tree["host"]),
            int(tree["port"]),
            int(tree["pid"]),
            str(tree["version"]),
            int(tree.get("hook_ms", 0)),
            str(tree.get("greeting", "")),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None

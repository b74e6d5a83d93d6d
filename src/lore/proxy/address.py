"""The address: where the Lore of a home listens, and the key that opens it.

The names of these files and paths are agreed on here, for those who write them too.
"""

from __future__ import annotations

import fcntl
import json
import os

LOCK_FILE = "lore.pid"
SERVER_FILE = "server.json"
KEY_FILE = "access.key"

PREFIX = "/api/v1"
"""What the paths of the REST interface begin with."""

_LARGEST_FILE = 10_000
_LONGEST_PID = 20


class Address:
    """Where to reach a running Lore, and how long a hook may take for it; 0 if it does not say.

    One that was read in a home is only true as long as that home says so. `greeting` is the mark
    of what this Lore says of itself.
    """

    __slots__ = ("greeting", "home", "hook_s", "host", "key", "port")

    def __init__(
        self,
        host: str,
        port: int,
        key: str,
        hook_s: float = 0.0,
        home: str = "",
        greeting: str = "",
    ) -> None:
        self.host = host
        self.port = port
        self.key = key
        self.hook_s = hook_s
        self.home = home
        self.greeting = greeting

    @property
    def url(self) -> str:
        """Return the address as a browser takes it."""
        return url_of(self.host, self.port)

    def is_true(self) -> bool:
        """Tell whether this still is where the Lore of its home listens."""
        if not self.home:
            return True
        now = find_address(self.home)
        return now is not None and (now.host, now.port, now.key) == (self.host, self.port, self.key)


LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""How this machine is called by itself; from there nobody else is heard."""


def url_of(host: str, port: int) -> str:
    """Return the URL of a server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def find_home(given: str, usual: str) -> str:
    """Return the home that is meant: the one that is given, the usual one, or ~/.lore."""
    return os.path.abspath(os.path.expanduser(given or usual or "~/.lore"))


def find_address(home: str) -> Address | None:
    """Return where the Lore of a home listens; None if none runs.

    What a killed one left behind is not believed, also once the next one starts: another program
    may listen there by now, and would be given the key.
    """
    pid = _find_holder(home)
    if pid is None:
        return None
    told, key = _read(home, SERVER_FILE), _read(home, KEY_FILE).strip()
    try:
        server = json.loads(told)
        host, port, teller = server["host"], server["port"], server["pid"]
        hook_s = int(server.get("hook_ms", 0)) / 1000
        greeting = str(server.get("greeting", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if teller != pid or not (isinstance(host, str) and isinstance(port, int) and _is_key(key)):
        return None
    return Address(host, port, key, hook_s, home, greeting)


def _is_key(key: str) -> bool:
    """Tell whether a key can stand in a header."""
    return bool(key) and key.isascii() and key.isprintable() and " " not in key


def _find_holder(home: str) -> int | None:
    """Return the pid of whoever holds the lock of a home."""
    try:
        file = os.open(os.path.join(home, LOCK_FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        first = os.pread(file, _LONGEST_PID, 0).split(b"\n")[0]
        return int(first) if first.isdigit() else None
    except OSError:
        return None
    finally:
        os.close(file)
    return None


def _read(home: str, name: str) -> str:
    try:
        with open(os.path.join(home, name), encoding="utf-8") as file:
            return file.read(_LARGEST_FILE)
    except (OSError, UnicodeDecodeError):
        return ""

"""Find the address and the access key of the daemon that serves a home.

The file names and path prefixes here are shared with the code that writes them.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat

LOCK_FILE = "lore.pid"
SERVER_FILE = "server.json"
KEY_FILE = "access.key"

API_PREFIX = "/api/v1"
"""Path prefix of the REST API."""

_MAX_FILE_BYTES = 10_000
_MAX_PID_CHARS = 20


class Address:
    """Address of a running daemon, and the time limit for hooks (0 if the daemon gives none).

    An address that was read from a home is valid only as long as that home still names it.
    `handshake_mark` is the fingerprint of the daemon's cached MCP handshake.
    """

    __slots__ = ("handshake_mark", "home", "hook_s", "host", "key", "port")

    def __init__(
        self,
        host: str,
        port: int,
        key: str,
        hook_s: float = 0.0,
        home: str = "",
        handshake_mark: str = "",
    ) -> None:
        self.host = host
        self.port = port
        self.key = key
        self.hook_s = hook_s
        self.home = home
        self.handshake_mark = handshake_mark

    @property
    def url(self) -> str:
        """Return the base URL."""
        return url_of(self.host, self.port)

    def is_current(self) -> bool:
        """Return whether the home still names this address."""
        if not self.home:
            return True
        now = find_address(self.home)
        return now is not None and (now.host, now.port, now.key) == (self.host, self.port, self.key)


LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Host names of this machine that only local processes can reach."""


def url_of(host: str, port: int) -> str:
    """Return the base URL of a server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def resolve_home(chosen: str, default: str) -> str:
    """Return the home folder as an absolute path: `chosen`, else `default`, else ~/.lore."""
    return os.path.abspath(os.path.expanduser(chosen or default or "~/.lore"))


def find_address(home: str) -> Address | None:
    """Return the address of the daemon that serves a home, or None if none runs.

    The file counts only if the process that wrote it still holds the lock. Another program may
    listen on the port that a killed daemon left behind, and must not get the key.
    """
    pid = _lock_holder_pid(home)
    if pid is None:
        return None
    text, key = _read_file(home, SERVER_FILE), _read_file(home, KEY_FILE).strip()
    try:
        server = json.loads(text)
        host, port, writer_pid = server["host"], server["port"], server["pid"]
        hook_s = int(server.get("hook_ms", 0)) / 1000
        handshake_mark = str(server.get("greeting", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if writer_pid != pid or not (
        isinstance(host, str) and isinstance(port, int) and _is_valid_key(key)
    ):
        return None
    return Address(host, port, key, hook_s, home, handshake_mark)


def _is_valid_key(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable() and " " not in key


def _lock_holder_pid(home: str) -> int | None:
    """Return the pid of the process that holds the lock of a home."""
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(os.path.join(home, LOCK_FILE), flags)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        first = os.pread(file, _MAX_PID_CHARS, 0).split(b"\n")[0]
        return int(first) if first.isdigit() else None
    except OSError:
        return None
    finally:
        os.close(file)
    return None


def _read_file(home: str, name: str) -> str:
    try:
        return read_file(os.path.join(home, name), _MAX_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return ""


def read_file(path: str, most_bytes: int) -> bytes:
    """Return the beginning of a regular file; raise `OSError` for any other, which could block."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", path)
        return os.read(file, most_bytes)
    finally:
        os.close(file)

"""Finds which user owns the client end of a loopback connection.

Every user of a machine can reach its loopback. The memory of one person must not enter the prompt
of another, so Linux is asked for the owner once per connection: by sock_diag(7), which takes a
hundredth of the time of reading its tables, or else by the tables.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Callable, MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

End = tuple[str, int]
Find = Callable[[End, End], int | None]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _STATE, _UID = 1, 2, 3, 7

_NETLINK_SOCK_DIAG: Final = 4
_BY_FAMILY, _ERROR = 20, 2
"""Kinds of a message (linux/sock_diag.h, linux/netlink.h)."""

_REQUEST_FLAG = 1
_ANY_STATE = 0xFFFF_FFFF
_ANY_COOKIE = b"\xff" * 8

_HEAD = struct.Struct("=IHHII")
_QUERY = struct.Struct("=BBxxI")
_REPLY = struct.Struct("=BBxx48xIIII")
"""Family, state, the ends, three counters, and the user (struct inet_diag_msg)."""

_UNOWNED_STATES = frozenset({6, 10, 12})
"""States in which no process holds this end: TIME_WAIT, LISTEN and SYN_RECV.

The kernel answers with a listener where there is no such connection (linux/tcp_states.h).
"""


class _NoAnswer(Exception):
    """The kernel does not support the query."""


_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors that a retry may not meet."""


def find_owner(client: End, server: End) -> int | None:
    """Return the user id of the process at the client's end of a connection, or None.

    Raises `OSError` if this process is out of file descriptors or memory.
    """
    try:
        return _ask_kernel(client, server)
    except (_NoAnswer, OSError):
        return _search_tables(client, server)


def _ask_kernel(client: End, server: End) -> int | None:
    """Query the owner of one connection by netlink; raise if that is not possible."""
    family, ends = _packed(client, server)
    question = _QUERY.pack(family, socket.IPPROTO_TCP, _ANY_STATE) + ends
    head = _HEAD.pack(_HEAD.size + len(question), _BY_FAMILY, _REQUEST_FLAG, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(head + question)
        reply = kernel.recv(4_096)
    kind, payload = _HEAD.unpack_from(reply)[1], reply[_HEAD.size :]
    if kind == _ERROR and struct.unpack_from("=i", payload)[0] == -errno.ENOENT:
        return None
    if kind != _BY_FAMILY or len(payload) < _REPLY.size:
        raise _NoAnswer
    _, state, *_, uid = _REPLY.unpack_from(payload)
    return None if state in _UNOWNED_STATES else int(uid)


def _packed(client: End, server: End) -> tuple[int, bytes]:
    """Return family and addresses of a connection as the kernel expects them."""
    addresses = [_unmapped(end[0]) for end in (client, server)]
    family = socket.AF_INET if addresses[0].version == 4 else socket.AF_INET6
    packed = b"".join(address.packed.ljust(16, b"\0") for address in addresses)
    return family, struct.pack("!HH", client[1], server[1]) + packed + bytes(4) + _ANY_COOKIE


def _unmapped(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; an IPv4-mapped IPv6 address as IPv4."""
    parsed = ipaddress.ip_address(address)
    return getattr(parsed, "ipv4_mapped", None) or parsed


def _search_tables(client: End, server: End) -> int | None:
    """Search the owner of a connection in the tables of all connections."""
    wanted = {(_table_address(client, six), _table_address(server, six)) for six in (False, True)}
    for table in _TABLES:
        try:
            lines = table.read_text("ascii").splitlines()[1:]
        except OSError as error:
            if error.errno in _EXHAUSTED:
                raise
            continue
        for line in lines:
            cells = line.split()
            if (cells[_LOCAL], cells[_REMOTE]) in wanted:
                return None if int(cells[_STATE], 16) in _UNOWNED_STATES else int(cells[_UID])
    return None


def _table_address(end: End, six: bool) -> str:  # noqa: FBT001 - one of two tables
    """Return an address as the kernel's tables print it."""
    address = ipaddress.ip_address(end[0])
    if six:
        mapped = address if address.version == 6 else ipaddress.ip_address(f"::ffff:{end[0]}")
        packed = mapped.packed
    else:
        packed = _unmapped(end[0]).packed
    words = struct.unpack(f"!{len(packed) // 4}I", packed)
    address_hex = "".join(f"{socket.htonl(word):08X}" for word in words)
    return f"{address_hex}:{end[1]:04X}"


CONNECTION: Final = "connection"
"""Key in the state of a request for what is cached per connection."""

CAN_FIND_OWNER: Final = sys.platform == "linux"
"""Whether this system reports owners. Where it does not, every user of the machine is served:
otherwise each client would need a secret in its address."""

Owner = Find
Ends = tuple[End, End]


async def is_own_user(scope: MutableMapping[str, Any], owner: Owner | None = None) -> bool:
    """Return whether a request comes from this machine and from this user.

    Raises `OSError` if that cannot be found now; a retry may succeed.
    """
    client, server = scope.get("client"), scope.get("server")
    if not client or not server or not is_loopback(client[0]):
        return False
    cached = scope.get("state", {}).get(CONNECTION)
    if cached is None:
        cached = {}
    if "own" not in cached:
        # not among the threads of the memory, which may all wait for a locked store
        cached["own"] = await asyncio.to_thread(_is_current_user, (client, server), owner)
    return bool(cached["own"])


@lru_cache(maxsize=256)
def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def _is_current_user(ends: Ends, owner: Owner | None) -> bool:
    if owner is None and not CAN_FIND_OWNER:
        return True
    (client, server) = ends
    return (owner or find_owner)(client, server) == os.geteuid()

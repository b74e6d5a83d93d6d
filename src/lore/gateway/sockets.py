"""Sockets: whose process is at the other end of a connection on this machine, as Linux tells.

It is asked for the one connection (sock_diag(7)), which takes a hundredth of the time that its
tables of all connections take. Those are read where it does not answer.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

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
_ASKED = struct.Struct("=BBxxI")
_TOLD = struct.Struct("=BBxx48xIIII")
"""Family, state, the ends, three counters, and the user (struct inet_diag_msg)."""

_NOBODYS = frozenset({6, 10, 12})
"""States in which no process holds this end: waiting for its time, listening, and half open.

The kernel answers with a listener where there is no such connection (linux/tcp_states.h).
"""


class _Silent(Exception):
    """The kernel does not answer such questions here."""


_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""For want of these nothing can be asked now, and it can soon."""


def find_owner(client: End, server: End) -> int | None:
    """Return the user id of the process at the client's end of a connection, or None.

    Raises `OSError` where this process has no means to ask now.
    """
    try:
        return _asked(client, server)
    except (_Silent, OSError):
        return _looked_up(client, server)


def _asked(client: End, server: End) -> int | None:
    """Ask for the owner of one connection; raise where that cannot be asked."""
    family, ends = _packed(client, server)
    question = _ASKED.pack(family, socket.IPPROTO_TCP, _ANY_STATE) + ends
    head = _HEAD.pack(_HEAD.size + len(question), _BY_FAMILY, _REQUEST_FLAG, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(head + question)
        told = kernel.recv(4_096)
    kind, said = _HEAD.unpack_from(told)[1], told[_HEAD.size :]
    if kind == _ERROR and struct.unpack_from("=i", said)[0] == -errno.ENOENT:
        return None
    if kind != _BY_FAMILY or len(said) < _TOLD.size:
        raise _Silent
    _, state, *_, uid = _TOLD.unpack_from(said)
    return None if state in _NOBODYS else int(uid)


def _packed(client: End, server: End) -> tuple[int, bytes]:
    """Return the family of a connection and its ends as the kernel takes them."""
    addresses = [_plain(end[0]) for end in (client, server)]
    family = socket.AF_INET if addresses[0].version == 4 else socket.AF_INET6
    packed = b"".join(address.packed.ljust(16, b"\0") for address in addresses)
    return family, struct.pack("!HH", client[1], server[1]) + packed + bytes(4) + _ANY_COOKIE


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; one that is mapped into the newer kind as the older one it is."""
    found = ipaddress.ip_address(address)
    return getattr(found, "ipv4_mapped", None) or found


def _looked_up(client: End, server: End) -> int | None:
    """Look for the owner of a connection among all there are."""
    wanted = {(_spelt(client, six), _spelt(server, six)) for six in (False, True)}
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
                return None if int(cells[_STATE], 16) in _NOBODYS else int(cells[_UID])
    return None


def _spelt(end: End, six: bool) -> str:  # noqa: FBT001 - one of two tables
    """Return an address as the kernel writes it: words in the order of this machine's bytes."""
    address = ipaddress.ip_address(end[0])
    if six:
        mapped = address if address.version == 6 else ipaddress.ip_address(f"::ffff:{end[0]}")
        packed = mapped.packed
    else:
        packed = _plain(end[0]).packed
    words = struct.unpack(f"!{len(packed) // 4}I", packed)
    spelt = "".join(f"{socket.htonl(word):08X}" for word in words)
    return f"{spelt}:{end[1]:04X}"

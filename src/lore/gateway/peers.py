"""Peers: who is at the other end of a connection on this machine.

Whoever can log in to a machine can reach its loopback. Memory of one person must not enter the
prompt of another, so Linux is asked whose the other end is, once for each connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import sys
from collections.abc import MutableMapping
from typing import Any, Final

from lore.gateway.sockets import End, Find, find_owner

CONNECTION: Final = "connection"
"""Where the state of a request has what is known of its connection, as long as that is open."""

TELLS_OWNERS: Final = sys.platform == "linux"
"""Whether this system says whose a connection is. Where it does not, every user of the machine may
pass: a name that others cannot guess would have to stand in the address of each client."""

Owner = Find
Ends = tuple[End, End]


async def is_own(scope: MutableMapping[str, Any], owner: Owner | None = None) -> bool:
    """Tell whether a request comes from this machine, and from the user whose Lore this is.

    Raises `OSError` where that cannot be told now; it may be the next time.
    """
    client, server = scope.get("client"), scope.get("server")
    if not client or not server or not is_loopback(client[0]):
        return False
    known = scope.get("state", {}).get(CONNECTION)
    if known is None:
        known = {}
    if "own" not in known:
        # not among the threads of the memory, which may all wait for a locked store
        known["own"] = await asyncio.to_thread(_is_ours, (client, server), owner)
    return bool(known["own"])


def is_loopback(address: str) -> bool:
    """Tell whether an address is one of this machine's own."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def _is_ours(ends: Ends, owner: Owner | None) -> bool:
    if owner is None and not TELLS_OWNERS:
        return True
    (client, server) = ends
    return (owner or find_owner)(client, server) == os.geteuid()

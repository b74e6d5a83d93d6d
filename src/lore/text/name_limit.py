"""The longest name: of a project, its remote, a session or an agent.

Databases index names, and PostgreSQL indexes no row of more than 2,704 bytes. Two names of this
length fit into one. Of a message's key only a digest is stored: it may be longer.
"""

from __future__ import annotations

import hashlib

from lore.errors import InvalidInput

LONGEST_NAME = 1_024
"""Bytes of UTF-8."""


def is_short(name: str) -> bool:
    """Return whether a name can be stored."""
    return len(name) * 4 <= LONGEST_NAME or _size(name) <= LONGEST_NAME


def check_name(name: str, what: str) -> str:
    """Return a name, or raise `InvalidInput` if it is too long."""
    if is_short(name):
        return name
    msg = f"{what} has a name of {_size(name)} bytes."
    raise InvalidInput(msg, hint=f"A name has at most {LONGEST_NAME} bytes of UTF-8.")


def shorten_name(name: str) -> str:
    """Return a name that can be stored: its beginning and its digest, if it is too long."""
    if is_short(name):
        return name
    whole = name.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(whole).hexdigest()
    start = whole[: LONGEST_NAME - len(digest) - 1].decode("utf-8", "ignore")
    return f"{start}~{digest}"


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))

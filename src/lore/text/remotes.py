"""Addresses of the remotes of repositories."""

from __future__ import annotations

import re

_USER = re.compile(
    r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)"
    r"(?:[^/]*@)?"
    r"(?:[^/:@\[]*:(?!\d*(?:/|$)).*@)?"  # what follows a colon is no port but has a '/'
)
"""The start of a remote's address: a password may have characters that should be escaped there."""


def without_user(remote: str) -> str:
    """Return the address of a remote without user and password; the same for one without."""
    return _USER.sub(r"\g<scheme>", remote, count=1)

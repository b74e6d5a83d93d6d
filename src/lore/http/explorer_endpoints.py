"""REST endpoints of the explorer that belong to no single item. Reading reinforces nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lore import __version__
from lore.http.endpoint import Endpoint, NoArguments, get_endpoint
from lore.memory import Memory
from lore.records import ACCESS_SCOPES, AccessScope, Origin
from lore.tools.tool import Caller


@dataclass(frozen=True, slots=True)
class Me:
    """Who calls: the name and scopes of the key or browser, and as whose words it writes.

    `read_only` if nothing can be written: the key lacks the scope, or the memory is read-only.
    """

    name: str
    scopes: tuple[AccessScope, ...]
    browser: bool
    origin: Origin
    read_only: bool
    version: str
    home: str


def _me(memory: Memory, _a: NoArguments, caller: Caller) -> Me:
    grant = caller.grant
    scopes = tuple(one for one in ACCESS_SCOPES if grant is not None and grant.allows(one))
    return Me(
        name=grant.name if grant is not None else "",
        scopes=scopes,
        browser=grant is not None and grant.browser,
        origin=caller.origin,
        read_only="write" not in scopes or memory.database.read_only,
        version=__version__,
        home=str(memory.settings.home),
    )


EXPLORER_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    get_endpoint("/me", "Who calls, and what they may do.", NoArguments, _me, result=Me),
)
"""In the order of the documentation."""

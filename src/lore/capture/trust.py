"""Trust: who speaks in what a fragment came from, and what a lower voice may not do."""

from __future__ import annotations

from collections.abc import Sequence

from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.records import TRUST, Fragment, Origin
from lore.store import messages
from lore.store.db import Connection
from lore.text import parts


def lowest(db: Connection, origin: Origin, source_ns: Sequence[int]) -> Origin:
    """Return the least trusted of an origin and of all that speak in the messages."""
    said = messages.by_number(db, source_ns).values()
    voices = [origin, *(parts.lowest_origin(m.parts, m.origin) for m in said)]
    return min(voices, key=TRUST.__getitem__)


def check_may_change(origin: Origin, fragment: Fragment) -> None:
    """Refuse a change of what someone with more trust said."""
    check_origin(origin)
    if TRUST[origin] < fragment.trust:
        msg = f"What a '{origin}' says does not change what a '{fragment.origin}' said."
        raise InvalidInput(msg, hint="A person can: 'lore update' and 'lore supersede'.")

"""Trust: what a lower voice may not do."""

from __future__ import annotations

from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.records import TRUST, Fragment, Origin

_WHO_CAN = "A person can: 'lore update' and 'lore supersede'."


def check_may_change(origin: Origin, fragment: Fragment) -> None:
    """Refuse a change of what someone with more trust said."""
    check_origin(origin)
    if TRUST[origin] < fragment.trust:
        msg = f"What a '{origin}' says does not change what a '{fragment.origin}' said."
        raise InvalidInput(msg, hint=_WHO_CAN)


def check_may_supersede(origin: Origin, older: Fragment, newer: Fragment) -> None:
    """Refuse to let less trust stand in the place of more, unless a person decides it."""
    check_origin(origin)
    if origin == "user":
        return
    if min(TRUST[origin], newer.trust) < older.trust:
        lower = newer.origin if newer.trust < older.trust else origin
        msg = f"What a '{lower}' says does not supersede what a '{older.origin}' said."
        raise InvalidInput(msg, hint=_WHO_CAN)

"""Trust: what a lower voice may not do."""

from __future__ import annotations

from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.records import TRUST, Fragment, Origin


def check_may_change(origin: Origin, fragment: Fragment) -> None:
    """Refuse a change of what someone with more trust said."""
    check_origin(origin)
    if TRUST[origin] < fragment.trust:
        msg = f"What a '{origin}' says does not change what a '{fragment.origin}' said."
        raise InvalidInput(msg, hint="A person can: 'lore update' and 'lore supersede'.")

"""Trust: what a lower voice may not do."""

from __future__ import annotations

from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.records import TRUST, UNASKED_TRUST, Fragment, Origin

_WHO_CAN = "A person can: 'lore {command}'. What you know besides, store on its own."


def needed_for(fragment: Fragment) -> int:
    """Return the trust that a voice needs to take the place of a fragment.

    A preference that a person approved stands as their own words do: only a person changes it.
    """
    approved = fragment.origin == "repo" or "promoted_from" in fragment.metadata
    stands = fragment.kind == "preference" and fragment.trust >= UNASKED_TRUST
    return TRUST["user"] if approved and stands else fragment.trust


def check_may_change(origin: Origin, fragment: Fragment) -> None:
    """Refuse a change of what someone with more trust said."""
    _check(origin, fragment, "change", "update")


def check_may_delete(origin: Origin, fragment: Fragment) -> None:
    """Refuse to let less trust delete what someone with more trust said."""
    _check(origin, fragment, "delete", "delete")


def check_may_move(origin: Origin, fragment: Fragment) -> None:
    """Refuse to let less trust put what someone with more trust said elsewhere."""
    _check(origin, fragment, "move", "link")


def _check(origin: Origin, fragment: Fragment, verb: str, command: str) -> None:
    check_origin(origin)
    if TRUST[origin] < needed_for(fragment):
        msg = f"What comes from '{origin}' does not {verb} what comes from '{fragment.origin}'."
        raise InvalidInput(msg, hint=_WHO_CAN.format(command=command))


def check_may_supersede(origin: Origin, older: Fragment, newer: Fragment) -> None:
    """Refuse to let less trust stand in the place of more, unless a person decides it."""
    check_origin(origin)
    if origin == "user":
        return
    needed = needed_for(older)
    if min(TRUST[origin], newer.trust) < needed:
        lower = newer.origin if newer.trust < needed else origin
        msg = f"What comes from '{lower}' does not supersede what comes from '{older.origin}'."
        raise InvalidInput(msg, hint=_WHO_CAN.format(command="supersede"))

"""Trust rules: what an origin with lower trust may not change."""

from __future__ import annotations

from lore.errors import InvalidInput
from lore.records import TRUST, UNASKED_TRUST, Fragment, Origin
from lore.validation import check_origin

_USER_HINT = "A user can, with 'lore {command}'. Store what you know besides as a new fragment."


def required_trust(fragment: Fragment) -> int:
    """Return the trust that an origin needs to replace a fragment.

    A preference that a user approved counts as their own words: only a user changes it.
    """
    approved = fragment.origin == "repo" or "promoted_from" in fragment.metadata
    stands = fragment.kind == "preference" and fragment.trust >= UNASKED_TRUST
    return TRUST["user"] if approved and stands else fragment.trust


def check_may_change(origin: Origin, fragment: Fragment) -> None:
    """Reject a change by an origin with lower trust."""
    _check(origin, fragment, "change", "update")


def check_may_delete(origin: Origin, fragment: Fragment) -> None:
    """Reject a deletion by an origin with lower trust."""
    _check(origin, fragment, "delete", "delete")


def check_may_move(origin: Origin, fragment: Fragment) -> None:
    """Reject a move by an origin with lower trust."""
    _check(origin, fragment, "move", "link")


def _check(origin: Origin, fragment: Fragment, verb: str, command: str) -> None:
    check_origin(origin)
    if TRUST[origin] < required_trust(fragment):
        msg = f"Origin '{origin}' may not {verb} a fragment of origin '{fragment.origin}'."
        raise InvalidInput(msg, hint=_USER_HINT.format(command=command))


def check_may_supersede(origin: Origin, older: Fragment, newer: Fragment) -> None:
    """Reject a supersession by lower trust, unless a user decides it."""
    check_origin(origin)
    if origin == "user":
        return
    needed = required_trust(older)
    if min(TRUST[origin], newer.trust) < needed:
        lower = newer.origin if newer.trust < needed else origin
        msg = f"Origin '{lower}' may not supersede a fragment of origin '{older.origin}'."
        raise InvalidInput(msg, hint=_USER_HINT.format(command="supersede"))

"""Trust: what a lower voice may not do."""

from __future__ import annotations

from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.records import TRUST, Fragment, Origin

_WHO_CAN = "A person can: 'lore {command}'. What you know besides, store on its own."


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
    if TRUST[origin] < fragment.trust:
        msg = f"What comes from '{origin}' does not {verb} what comes from '{fragment.origin}'."
        raise InvalidInput(msg, hint=_WHO_CAN.format(command=command))


def check_may_supersede(origin: Origin, older: Fragment, newer: Fragment) -> None:
    """Refuse to let less trust stand in the place of more, unless a person decides it."""
    check_origin(origin)
    if origin == "user":
        return
    if min(TRUST[origin], newer.trust) < older.trust:
        lower = newer.origin if newer.trust < older.trust else origin
        msg = f"What comes from '{lower}' does not supersede what comes from '{older.origin}'."
        raise InvalidInput(msg, hint=_WHO_CAN.format(command="supersede"))

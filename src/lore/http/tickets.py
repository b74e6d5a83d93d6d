"""Tickets by REST: a path that logs a browser in, once."""

from __future__ import annotations

from dataclasses import dataclass

from lore.http.endpoint import Endpoint
from lore.http.fields import Nothing
from lore.http.logins import TICKET_S, Logins
from lore.memory import Memory
from lore.tools.tool import Caller


@dataclass(frozen=True, slots=True)
class Ticket:
    """Where a browser is let in, and for how long."""

    path: str
    expires_in_s: float


def endpoints(logins: Logins) -> tuple[Endpoint[Nothing]]:
    """Return the endpoint that makes tickets."""

    def make(_memory: Memory, _nothing: Nothing, _caller: Caller) -> Ticket:
        return Ticket(f"/login?ticket={logins.make_ticket()}", TICKET_S)

    return (
        Endpoint(
            "POST", "/logins", "Make a path that logs a browser in, once.", "admin", Nothing, make,
            Ticket, tags=("access",),
        ),
    )  # fmt: skip

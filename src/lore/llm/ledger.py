"""What a digester needs of whoever keeps the money for background work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lore.llm.chat import Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money that is set aside for one call: by whom it is asked, and for what question."""

    key: str
    question: str
    identity: str


class Ledger(Protocol):
    """Where calls are announced before and settled after."""

    def reserve(self, question: str, identity: str, most: Usage) -> Reservation:
        """Set aside what a call may take at most, or raise `BudgetSpent`."""

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Enter what the call took, and give back the rest."""

    def release(self, reservation: Reservation) -> None:
        """Give back what was set aside for a call that took nothing."""

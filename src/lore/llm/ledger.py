"""Protocol of the ledger for background calls to a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lore.llm.chat import Usage


@dataclass(frozen=True, slots=True)
class CallReservation:
    """Money reserved for one call: its key, its question, and the model."""

    key: str
    question: str
    identity: str


class Ledger(Protocol):
    """Reserve money before a call, and settle its cost after it."""

    def reserve(self, question: str, identity: str, most: Usage) -> CallReservation:
        """Reserve the maximum cost of a call, or raise `BudgetSpent`."""

    def settle(self, reservation: CallReservation, usage: Usage) -> None:
        """Record the cost of a call, and release the rest of its reservation."""

    def release(self, reservation: CallReservation) -> None:
        """Release the reservation of a call that used nothing."""

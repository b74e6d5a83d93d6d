"""Budget: prices, reservations, ledgers and limits of the cost of model calls."""

from __future__ import annotations

from lore.budget.ledger import BackgroundLedger
from lore.budget.prices import find_call_cost, unknown_price_notice

__all__ = ["BackgroundLedger", "find_call_cost", "unknown_price_notice"]

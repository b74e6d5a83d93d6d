"""Budget: what calls to models cost, and what they may cost."""

from __future__ import annotations

from lore.budget.ledger import SpendLedger
from lore.budget.prices import find_price, price_notice

__all__ = ["SpendLedger", "find_price", "price_notice"]

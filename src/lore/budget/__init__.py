"""Budget: what calls to models cost, and what they may cost."""

from __future__ import annotations

from lore.budget.ledger import SpendLedger, Today
from lore.budget.prices import find_price, price_notice

__all__ = ["SpendLedger", "Today", "find_price", "price_notice"]

"""Databases of other programs, for rooms that need not know which engine those keep."""

from lore.store.sqlite.foreign import columns, open_foreign, rows

__all__ = ["columns", "open_foreign", "rows"]

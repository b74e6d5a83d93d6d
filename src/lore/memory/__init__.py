"""Memory: the front desk, one object with few-line methods that delegate."""

from lore.memory.facade import Memory, examine, restore_backup

__all__ = ["Memory", "examine", "restore_backup"]

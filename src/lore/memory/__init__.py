"""Memory: one object that opens a home, composed of a few parts."""

from lore.memory.facade import Memory, examine, restore_backup

__all__ = ["Memory", "examine", "restore_backup"]

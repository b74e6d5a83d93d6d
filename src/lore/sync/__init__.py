"""Sync: two homes of one person exchange what changed, and come to the same state."""

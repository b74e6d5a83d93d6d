"""Evaluations: measure Lore on datasets with known answers."""

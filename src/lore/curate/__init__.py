"""Curate: fragments as knowledge: placed, changed, traced back and taken back."""

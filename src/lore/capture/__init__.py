"""Capture: how conversations and knowledge come in."""

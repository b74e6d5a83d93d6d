"""Capture: read transcripts and messages, redact and deduplicate them, and store them."""

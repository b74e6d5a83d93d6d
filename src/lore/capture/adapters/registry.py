"""The adapters that there are, and the one that fits a file."""

from __future__ import annotations

from pathlib import Path

from lore.capture.adapters import (
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    generic,
    opencode,
    opencode_files,
    places,
    sweagent,
)
from lore.capture.transcripts import Adapter

ADAPTERS: tuple[Adapter, ...] = (
    claude_code,
    codex,
    opencode,
    opencode_files,
    chatgpt,
    claude_ai,
    sweagent,
    generic,
)
"""In the order in which they are asked; the one that takes almost anything comes last."""


def find_adapter(path: Path, head: bytes) -> Adapter | None:
    """Return the adapter of a regular file by its name and its first bytes, or None."""
    if not places.is_regular(path):
        return None
    return next((adapter for adapter in ADAPTERS if adapter.fits(path, head)), None)

"""The adapters, and the choice of the one that fits a file."""

from __future__ import annotations

from pathlib import Path

from lore.capture.adapter_protocol import Adapter
from lore.capture.adapters import (
    chatgpt,
    claude_ai,
    claude_code,
    cline,
    codex,
    copilot,
    cursor,
    cursor_cli,
    gemini,
    generic,
    json_fields,
    opencode,
    pi,
    specstory,
    sweagent,
)

ADAPTERS: tuple[Adapter, ...] = (
    claude_code,
    codex,
    opencode,
    opencode.session_files,
    pi,
    gemini,
    gemini.chat_documents,
    gemini.prompt_log,
    copilot,
    copilot.session_documents,
    cursor.editor_database,
    cursor_cli.adapter,
    cursor,
    cline.cline,
    cline.roo_code,
    specstory,
    chatgpt.adapter,
    claude_ai.adapter,
    sweagent,
    generic,
)
"""In the order in which they are tried; the generic one, which accepts almost anything, is last."""


def find_adapter(path: Path, head: bytes) -> Adapter | None:
    """Return the adapter for a regular file by its name and first bytes, or None."""
    if not json_fields.is_regular(path):
        return None
    return next((adapter for adapter in ADAPTERS if adapter.fits(path, head)), None)

"""The file of a project's page: read whole, written whole, never through a link."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from lore.errors import InvalidInput
from lore.text import shared_page
from lore.text.secrets import Redactor
from lore.text.shared_page import Page

LARGEST_BYTES = 1_000_000
"""A page is made to be read by people; a larger file is none."""


def read_page(path: Path, redactor: Redactor) -> Page | None:
    """Return the page in a file, without its secrets; None if there is no file."""
    if path.is_symlink():
        msg = f"{path} is a link, and a page is read from its own place only."
        raise InvalidInput(msg)
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= LARGEST_BYTES else b""
    except FileNotFoundError:
        return None
    if size > LARGEST_BYTES:
        msg = f"{path} has {size:,} bytes; a page has at most {LARGEST_BYTES:,}."
        raise InvalidInput(msg)
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if shared_page.has_conflict(text):
        msg = f"{path} has the marks of an unfinished merge."
        raise InvalidInput(msg, hint="Resolve the conflict first.")
    return shared_page.parse(redactor.redact(text))


def write_page(path: Path, text: str) -> None:
    """Write a page so that it is there whole or not at all."""
    if path.is_symlink():
        msg = f"{path} is a link, and a page is written to its own place only."
        raise InvalidInput(msg)
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        part.write_text(text, "utf-8", newline="\n")
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)

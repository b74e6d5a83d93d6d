"""Redaction: the redactor of an installation, and what it does to nested values."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lore import key_files
from lore.settings import Settings
from lore.text import words
from lore.text.secrets import Redactor

KEY_FILE = "redaction.key"
KEY_BYTES = 32

UNKEPT = Redactor(secrets.token_bytes(KEY_BYTES))
"""For whoever opens no home: redacts alike, with marks that only this process makes."""


def open_redactor(config: Settings) -> Redactor:
    """Return the redactor of a home, whose key is made at the first call."""
    return Redactor(
        _key_of(config.home / KEY_FILE),
        patterns=config.capture_redact_patterns,
        allow=config.capture_redact_allow,
        active=config.capture_redact,
    )


def home_key(config: Settings, purpose: str) -> bytes:
    """Return a key of a home for another purpose; neither tells anything of the other."""
    return hmac.digest(_key_of(config.home / KEY_FILE), purpose.encode(), "sha256")


def _key_of(path: Path) -> bytes:
    """Return the key of a home; where none can be kept, one for this process."""
    with suppress(OSError):
        return key_files.ensure(
            path,
            make=lambda: secrets.token_bytes(KEY_BYTES),
            is_sound=lambda key: len(key) == KEY_BYTES,
        )
    return secrets.token_bytes(KEY_BYTES)


_NAMES = ("name", "key", "setting", "variable", "field", "header", "option", "env")
_VALUES = frozenset(("value", "val", "values", "default"))
"""How pairs call their two halves: the one says what the other is."""


def redact_tree(redactor: Redactor, tree: Any, name: str = "") -> Any:
    """Return nested values with every text redacted; a value is judged with its name.

    What is only called a value is judged with the name that stands beside it, or above it.
    """
    if isinstance(tree, str):
        return redactor.redact(words.clean(tree), name=name)
    if isinstance(tree, Mapping):
        named = _named(tree) or name
        return {
            redactor.redact(words.clean(key)) if isinstance(key, str) else key: redact_tree(
                redactor, value, named if named and str(key).lower() in _VALUES else str(key)
            )
            for key, value in tree.items()
        }
    if isinstance(tree, list | tuple):
        return [redact_tree(redactor, value, name) for value in tree]
    return tree


def _named(tree: Mapping[Any, Any]) -> str:
    """Return the name that a pair of name and value has in it; empty if it is none."""
    by_key = {str(key).lower(): value for key, value in tree.items()}
    found = (by_key.get(key) for key in _NAMES)
    return next((name for name in found if isinstance(name, str) and name), "")

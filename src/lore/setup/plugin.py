"""The plugin for Claude Code: whether a person has it installed and turned on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lore.errors import InvalidInput
from lore.setup import jsonc

NAME = "lore@lore"
"""The plugin and its marketplace, as both call themselves and Claude Code names them."""

_PROJECT_FILES = ("settings.local.json", "settings.json")


def is_on(user_home: Path, folder: Path | None = None) -> bool:
    """Tell whether Claude Code uses the plugin: everywhere, or in the project in a folder."""
    installed = _read(user_home / ".claude" / "plugins" / "installed_plugins.json", "plugins")
    return bool(installed) and next(_choices(user_home, folder), False)


def _choices(user_home: Path, folder: Path | None) -> Iterator[bool]:
    """Yield what the settings say that name the plugin, the one that counts first."""
    own = (folder / ".claude" / name for name in _PROJECT_FILES) if folder else ()
    for path in (*own, user_home / ".claude" / "settings.json"):
        chosen = _read(path, "enabledPlugins")
        if chosen is not None:
            yield chosen is True


def _read(path: Path, table: str) -> Any:
    """Return what a file of Claude Code says of the plugin; nothing if it cannot be read."""
    try:
        return jsonc.read(path.read_text("utf-8"), (table, NAME))
    except (OSError, UnicodeDecodeError, InvalidInput):
        return None

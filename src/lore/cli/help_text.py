"""The help of `lore` itself: its commands in groups, on one screen."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Mapping, Sequence

DISTRIBUTION = "agent-lore"
"""The name of the package in package indexes, where `lore` is another project."""

GROUPS: Mapping[str, Sequence[str]] = {
    "Everyday": (
        "recall", "ask", "remember", "sessions", "read", "undo", "forget", "spend",
        "config",
    ),
    "Agents": ("setup", "run", "capture", "up", "down", "status", "gateway", "open", "tray"),
    "Knowledge": (
        "search", "standing", "session", "roots", "explore", "traverse", "log", "diff",
        "timeline", "index", "why", "episode", "episodes", "update", "delete", "link", "supersede",
        "revoke", "share", "conflicts", "promote",
    ),
    "Tasks": ("task", "tasks", "learnings", "skills", "handoff", "continuity", "strategy"),
    "Upkeep": (
        "doctor", "backup", "restore", "export", "import", "sync", "embed", "distill",
        "consolidate", "jobs", "logs", "service", "model", "key", "serve", "owner", "team",
        "publish", "upgrade", "mcp", "hook", "tool", "statusline", "help",
    ),
    "Measure": ("stats", "eval", "demo"),
}  # fmt: skip
"""Every command once, in the order of the help."""

DESCRIBED = ("Everyday", "Agents")
"""Groups of which the help describes every command; `lore help COMMAND` describes the others."""

_WIDTH = 80
_OPTIONS = """\
Options
  --home FOLDER   Folder of the memory (default: LORE_HOME, or ~/.lore)
  -V, --version   Show the version
  -h, --help      Show this help; 'lore help COMMAND' explains one command"""

_MEANT = {
    "list": ("sessions", "roots", "search"),
    "ls": ("sessions", "roots", "search"),
    "show": ("read", "session", "status"),
    "get": ("read", "recall"),
    "cat": ("read", "session"),
    "view": ("read", "open"),
    "add": ("remember",),
    "store": ("remember",),
    "save": ("remember",),
    "note": ("remember",),
    "new": ("remember",),
    "answer": ("ask", "recall"),
    "find": ("search", "recall"),
    "grep": ("search", "recall"),
    "query": ("recall", "search"),
    "question": ("ask",),
    "rm": ("delete", "forget"),
    "remove": ("delete", "forget"),
    "purge": ("forget",),
    "edit": ("update",),
    "history": ("log", "timeline"),
    "start": ("up",),
    "daemon": ("up", "status"),
    "stop": ("down",),
    "init": ("setup",),
    "install": ("setup", "service"),
    "uninstall": ("setup", "service"),
    "settings": ("config",),
    "set": ("config",),
    "cost": ("spend",),
    "costs": ("spend",),
    "budget": ("spend", "config"),
    "check": ("doctor",),
    "info": ("status", "stats"),
    "ui": ("open",),
    "web": ("open",),
    "browse": ("open", "explore"),
    "push": ("sync", "share"),
    "pull": ("sync", "capture"),
    "version": ("--version",),
}
"""Words that people try, and what they may mean."""

_SUGGESTED = 3


def describe_commands(summaries: Mapping[str, str]) -> str:
    """Return the help of `lore`; `summaries` has one line for each command."""
    parts = ["Usage: lore COMMAND [OPTIONS]    Long-term memory for AI agents."]
    for group, names in GROUPS.items():
        if group in DESCRIBED:
            lines = [f"  {name:<10}{summaries[name].removesuffix('.')}" for name in names]
            parts += ["", group, *lines]
        else:
            parts += ["", *_wrapped(group, names)]
    return "\n".join([*parts, "", _OPTIONS])


def _wrapped(group: str, names: Iterable[str]) -> list[str]:
    indent = " " * 12
    return textwrap.wrap(
        f"{group:<12}{'  '.join(names)}",
        _WIDTH,
        subsequent_indent=indent,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def suggest(word: str, commands: Sequence[str]) -> str:
    """Return what a user may have meant by an unknown command, or ''."""
    meant = _MEANT.get(word.lower()) or difflib.get_close_matches(word.lower(), commands)
    names = [f"'lore {name}'" for name in meant[:_SUGGESTED]]
    *first, last = names or [""]
    choice = f"{', '.join(first)} or {last}" if first else last
    return f"Did you mean {choice}?" if names else ""


def upgrade_command(prefix: str) -> str:
    """Return the command that upgrades Lore in the environment at `prefix`."""
    folders = prefix.replace("\\", "/").split("/")
    if "uv" in folders and "tools" in folders:
        return f"uv tool upgrade {DISTRIBUTION}"
    if "pipx" in folders:
        return f"pipx upgrade {DISTRIBUTION}"
    return f"{prefix}/bin/python -m pip install --upgrade {DISTRIBUTION}"

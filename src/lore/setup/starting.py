"""Starting an agent with memory for one run: no file is written, its command line says all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lore.errors import InvalidInput, NotFound
from lore.setup.agents import Command

_PACKAGE = Path(__file__).resolve().parents[1]
_PLUGIN = ("plugins", "claude-code")

BASE_URL, CUSTOM_HEADERS = "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS"
_OPENCODE_PATHS = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}
"""Providers of opencode, and where each expects the paths of its interface to begin."""


@dataclass(frozen=True, slots=True)
class Start:
    """A command line, what is added to the environment, and a folder to look in for programs."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Through:
    """The gateway that an agent is to talk through, and the headers that it sends to it."""

    url: str
    headers: Mapping[str, str]

    def lines(self) -> str:
        """Return the headers as Claude Code is told them."""
        return "\n".join(f"{name}: {value}" for name, value in self.headers.items())


def _claude(command: Command, through: Through | None) -> Start:
    """Let the plugin find `lore` by its name, with the home that is in use."""
    words = ("--plugin-dir", str(find_plugin()))
    added = {"LORE_HOME": command[command.index("--home") + 1]} if "--home" in command else {}
    if through is not None:
        added |= {BASE_URL: through.url, CUSTOM_HEADERS: through.lines()}
    return Start(words, added, folder=str(Path(command[0]).parent))


def _codex(command: Command, through: Through | None) -> Start:
    program, *options = command
    settings: dict[str, object] = {
        "mcp_servers.lore.command": program,
        "mcp_servers.lore.args": [*options, "mcp"],
    }
    if through is not None:
        settings["openai_base_url"] = f"{through.url}/v1"
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return Start(tuple(word for pair in words for word in ("-c", pair)), {})


def _opencode(command: Command, through: Through | None) -> Start:
    server = {"type": "local", "command": [*command, "mcp"], "enabled": True}
    told: dict[str, object] = {"mcp": {"lore": server}}
    if through is not None:
        told["provider"] = {
            name: {"options": {"baseURL": through.url + below, "headers": dict(through.headers)}}
            for name, below in _OPENCODE_PATHS.items()
        }
    return Start((), {"OPENCODE_CONFIG_CONTENT": json.dumps(told)})


_STARTS: dict[str, Callable[[Command, Through | None], Start]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
}


def prepare(
    agent: str,
    arguments: Sequence[str],
    command: Command,
    path: str,
    through: Through | None = None,
) -> Start:
    """Return how an agent is started with memory; `path` is where programs are looked for."""
    name = {"claude-code": "claude"}.get(agent, agent)
    start = _STARTS.get(name)
    if start is None:
        msg = f"Lore cannot run '{agent}'."
        raise InvalidInput(msg, hint=f"It can run {', '.join(_STARTS)}.")
    program = shutil.which(name, path=path)
    if program is None:
        msg = f"There is no program '{name}' on this machine."
        raise NotFound(msg, hint="Install it, or add its folder to PATH.")
    prepared = start(command, through)
    return replace(prepared, words=(program, *prepared.words, *arguments))


def find_plugin() -> Path:
    """Return the folder of the plugin for Claude Code: in the package, or in a checkout."""
    for folder in (_PACKAGE.joinpath("data", *_PLUGIN), _PACKAGE.parents[1].joinpath(*_PLUGIN)):
        if (folder / ".claude-plugin" / "plugin.json").is_file():
            return folder
    msg = "The plugin for Claude Code is not part of this installation."
    raise NotFound(msg, hint="'lore setup claude-code' needs no plugin.")

"""Starting an agent with memory for one run: no file is written, its command line says all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lore.errors import InvalidInput, NotFound
from lore.setup import plugin
from lore.setup.agents import Command, claude_code_words, find_in_claude_code

BASE_URL = "ANTHROPIC_BASE_URL"
BASE_URLS = {"claude": BASE_URL, "gemini": "GOOGLE_GEMINI_BASE_URL"}
CUSTOM_HEADERS = {
    "claude": ("ANTHROPIC_CUSTOM_HEADERS", "\n"),
    "gemini": ("GEMINI_CLI_CUSTOM_HEADERS", ","),
}
"""Variables that tell an agent an address and headers, and what stands between two headers."""

OPENCODE_PATHS = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}
"""Providers of opencode, and where each expects the paths of its interface to begin."""

_PACKAGE = Path(__file__).resolve().parents[1]
_PLUGIN = ("plugins", "claude-code")


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

    def environ(self, agent: str) -> dict[str, str]:
        """Return what an agent is told by its environment."""
        variable, between = CUSTOM_HEADERS[agent]
        told = between.join(f"{name}: {value}" for name, value in self.headers.items())
        return {BASE_URLS[agent]: self.url, variable: told}


@dataclass(frozen=True, slots=True)
class Place:
    """Who starts an agent and where: the person's home, the project's folder, the gateway."""

    user_home: Path
    project: Path
    through: Through | None = None


def _claude(command: Command, place: Place) -> Start:
    """Let the plugin find `lore` by its name, with the home that is in use.

    What Claude Code has already would only be done twice: it is given what it lacks.
    """
    added = {"LORE_HOME": command[command.index("--home") + 1]} if "--home" in command else {}
    if place.through is not None:
        added |= place.through.environ("claude")
    start = Start((), added, folder=str(Path(command[0]).parent))
    if plugin.is_on(place.user_home, place.project):
        return start
    server, hooks = find_in_claude_code(place.user_home, command)
    if server or hooks:
        lacking = claude_code_words(command, server=not server, hooks=not hooks)
        return replace(start, words=lacking)
    return replace(start, words=("--plugin-dir", str(find_plugin())))


def _codex(command: Command, place: Place) -> Start:
    """Name the server as setup names it: the one for this run then takes the other's place."""
    program, *options = command
    settings: dict[str, object] = {
        "mcp_servers.lore.command": program,
        "mcp_servers.lore.args": [*options, "mcp"],
    }
    if place.through is not None:
        settings["openai_base_url"] = f"{place.through.url}/v1"
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return Start(tuple(word for pair in words for word in ("-c", pair)), {})


def _opencode(command: Command, place: Place) -> Start:
    """Do the same; opencode lays this over what its files say."""
    server = {"type": "local", "command": [*command, "mcp"], "enabled": True}
    told: dict[str, object] = {"mcp": {"lore": server}}
    if place.through is not None:
        headers = dict(place.through.headers)
        told["provider"] = {
            name: {"options": {"baseURL": place.through.url + below, "headers": headers}}
            for name, below in OPENCODE_PATHS.items()
        }
    return Start((), {"OPENCODE_CONFIG_CONTENT": json.dumps(told)})


def _gemini(_command: Command, place: Place) -> Start:
    """Tell it the gateway, and no server: it reads those from its files alone."""
    return Start((), place.through.environ("gemini") if place.through else {})


_STARTS: dict[str, Callable[[Command, Place], Start]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}


def prepare(
    agent: str, arguments: Sequence[str], command: Command, path: str, place: Place
) -> Start:
    """Return how an agent is started with memory; `path` is where programs are looked for."""
    name = {"claude-code": "claude"}.get(agent, agent)
    start = _STARTS.get(name)
    if start is None and agent.startswith("-"):
        msg = f"There is no option '{agent}'."
        raise InvalidInput(msg, hint="'lore run --help' lists them; those of an agent follow it.")
    if start is None:
        msg = f"Lore cannot run '{agent}'."
        raise InvalidInput(msg, hint=f"It can run {', '.join(_STARTS)}.")
    program = shutil.which(name, path=path)
    if program is None:
        msg = f"There is no program '{name}' on this machine."
        raise NotFound(msg, hint="Install it, or add its folder to PATH.")
    prepared = start(command, place)
    return replace(prepared, words=(program, *prepared.words, *arguments))


def find_plugin() -> Path:
    """Return the folder of the plugin for Claude Code: in the package, or in a checkout."""
    for folder in (_PACKAGE.joinpath("data", *_PLUGIN), _PACKAGE.parents[1].joinpath(*_PLUGIN)):
        if (folder / ".claude-plugin" / "plugin.json").is_file():
            return folder
    msg = "The plugin for Claude Code is not part of this installation."
    raise NotFound(msg, hint="'lore setup claude-code' needs no plugin.")

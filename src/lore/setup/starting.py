"""Starting an agent with memory for one run: no file is written, its command line says all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lore.errors import InvalidInput, NotFound
from lore.setup import plugin
from lore.setup.agents import Command, is_claude_code_set_up

_PACKAGE = Path(__file__).resolve().parents[1]
_PLUGIN = ("plugins", "claude-code")


@dataclass(frozen=True, slots=True)
class Start:
    """A command line, what is added to the environment, and a folder to look in for programs."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Who starts an agent and where: the person's home, the project's folder."""

    user_home: Path
    project: Path


def _claude(command: Command, place: Place) -> Start:
    """Let the plugin find `lore` by its name, with the home that is in use.

    Where Claude Code has memory already, the plugin would only do all of it a second time.
    """
    home = {"LORE_HOME": command[command.index("--home") + 1]} if "--home" in command else {}
    start = Start((), home, folder=str(Path(command[0]).parent))
    if plugin.is_on(place.user_home, place.project):
        return start
    if is_claude_code_set_up(place.user_home, command):
        return start
    return replace(start, words=("--plugin-dir", str(find_plugin())))


def _codex(command: Command, _place: Place) -> Start:
    """Name the server as setup names it: the one for this run then takes the other's place."""
    program, *options = command
    settings = {
        "mcp_servers.lore.command": program,
        "mcp_servers.lore.args": [*options, "mcp"],
    }
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return Start(tuple(word for pair in words for word in ("-c", pair)), {})


def _opencode(command: Command, _place: Place) -> Start:
    """Do the same; opencode lays this over what its files say."""
    server = {"type": "local", "command": [*command, "mcp"], "enabled": True}
    return Start((), {"OPENCODE_CONFIG_CONTENT": json.dumps({"mcp": {"lore": server}})})


_STARTS: dict[str, Callable[[Command, Place], Start]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
}


def prepare(
    agent: str, arguments: Sequence[str], command: Command, path: str, place: Place
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
    prepared = start(command, place)
    return replace(prepared, words=(program, *prepared.words, *arguments))


def find_plugin() -> Path:
    """Return the folder of the plugin for Claude Code: in the package, or in a checkout."""
    for folder in (_PACKAGE.joinpath("data", *_PLUGIN), _PACKAGE.parents[1].joinpath(*_PLUGIN)):
        if (folder / ".claude-plugin" / "plugin.json").is_file():
            return folder
    msg = "The plugin for Claude Code is not part of this installation."
    raise NotFound(msg, hint="'lore setup claude-code' needs no plugin.")

"""Start an agent with memory for one run, by its command line and environment alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lore.errors import InvalidInput, NotFound
from lore.setup import agents
from lore.setup.agents import Command, claude_code_words, find_in_claude_code

BASE_URL = "ANTHROPIC_BASE_URL"
BASE_URLS = {"claude": BASE_URL, "gemini": "GOOGLE_GEMINI_BASE_URL"}
CUSTOM_HEADERS = {
    "claude": ("ANTHROPIC_CUSTOM_HEADERS", "\n"),
    "gemini": ("GEMINI_CLI_CUSTOM_HEADERS", ","),
}
"""The variable for custom headers of each agent, and the separator between headers."""

OPENCODE_PATHS = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}
"""Providers of opencode, and the path prefix of each."""


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """A command line, additions to the environment, and a folder for PATH."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    folder: str = ""


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """The gateway that an agent uses, and the headers that it sends."""

    url: str
    headers: Mapping[str, str]

    def environ(self, agent: str) -> dict[str, str]:
        """Return the environment variables that configure an agent."""
        variable, between = CUSTOM_HEADERS[agent]
        headers = between.join(f"{name}: {value}" for name, value in self.headers.items())
        return {BASE_URLS[agent]: self.url, variable: headers}


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """Where an agent is started: the user's home, the project folder, the gateway."""

    user_home: Path
    project: Path
    through: GatewayRoute | None = None


def _claude(command: Command, place: LaunchContext) -> LaunchCommand:
    """Let the plugin find `lore` by name, with the current home.

    Claude Code gets only what its configuration lacks, so that nothing is there twice.
    """
    added = _home_variable(command)
    if place.through is not None:
        added |= place.through.environ("claude")
    start = LaunchCommand((), added, folder=str(Path(command[0]).parent))
    if agents.is_plugin_on(place.user_home, place.project):
        return start
    server, hooks = find_in_claude_code(place.user_home, command)
    if server or hooks:
        lacking = claude_code_words(command, server=not server, hooks=not hooks)
        return replace(start, words=lacking)
    return replace(start, words=("--plugin-dir", str(agents.find_plugin_file("claude-code"))))


def _home_variable(command: Command) -> dict[str, str]:
    return {"LORE_HOME": command[command.index("--home") + 1]} if "--home" in command else {}


def _codex(command: Command, place: LaunchContext) -> LaunchCommand:
    """Name the server as setup does, so that it replaces a configured one for this run."""
    program, *options = command
    settings: dict[str, object] = {
        "mcp_servers.lore.command": program,
        "mcp_servers.lore.args": [*options, "mcp"],
    }
    if place.through is not None:
        settings["openai_base_url"] = f"{place.through.url}/v1"
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return LaunchCommand(tuple(word for pair in words for word in ("-c", pair)), {})


def _opencode(command: Command, place: LaunchContext) -> LaunchCommand:
    """Pass a configuration that opencode merges over its files.

    The plugin finds `lore` by name, with the current home.
    """
    server = {"type": "local", "command": [*command, "mcp"], "enabled": True}
    config: dict[str, object] = {"mcp": {"lore": server}}
    if place.through is not None:
        headers = dict(place.through.headers)
        config["provider"] = {
            name: {"options": {"baseURL": place.through.url + below, "headers": headers}}
            for name, below in OPENCODE_PATHS.items()
        }
    added: dict[str, str] = {}
    if not agents.has_opencode_plugin(place.user_home, command):
        config["plugin"] = [agents.find_plugin_file("opencode", "lore.js").as_uri()]
        added = _home_variable(command)
    added["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)
    return LaunchCommand((), added, folder=str(Path(command[0]).parent))


def _gemini(_command: Command, place: LaunchContext) -> LaunchCommand:
    """Configure the gateway only: Gemini CLI reads servers from its files alone."""
    return LaunchCommand((), place.through.environ("gemini") if place.through else {})


_STARTS: dict[str, Callable[[Command, LaunchContext], LaunchCommand]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}


def plan_launch(
    agent: str, arguments: Sequence[str], command: Command, path: str, place: LaunchContext
) -> LaunchCommand:
    """Return how to start an agent with memory; `path` is the PATH to search for programs."""
    name = {"claude-code": "claude"}.get(agent, agent)
    start = _STARTS.get(name)
    if start is None and agent.startswith("-"):
        msg = f"There is no option '{agent}'."
        raise InvalidInput(msg, hint="'lore run --help' lists them; those of an agent follow it.")
    if start is None:
        raise InvalidInput(f"Lore cannot run '{agent}'.", hint=f"It can run {', '.join(_STARTS)}.")
    program = shutil.which(name, path=path)
    if program is None:
        msg = f"There is no program '{name}' on this machine."
        raise NotFound(msg, hint="Install it, or add its folder to PATH.")
    prepared = start(command, place)
    return replace(prepared, words=(program, *prepared.words, *arguments))

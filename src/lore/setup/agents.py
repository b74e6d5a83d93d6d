"""Agents: which files each one is configured by, and what Lore puts into them."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

from lore.errors import InvalidInput
from lore.proxy.events import EVENTS
from lore.setup import jsonc, plugin, toml_tables

_HOOK_S = 5
"""The agent gives a hook up after this; a hook gives up by itself much earlier."""

_PROGRAMS = ("lore", "lore.exe")

Command = Sequence[str]
"""The words that run `lore`."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of one file: how Lore is put into its text, and how it is taken out."""

    path: Path
    put: Callable[[str], str]
    drop: Callable[[str], str]
    """Take out what `put` writes, and nothing that differs from it."""
    give_back: Callable[[str, str], str]
    """Take Lore out of a text, and put in its place what a former text had there."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that Lore can be set up for; `traces` are where it leaves its own files."""

    name: str
    title: str
    programs: tuple[str, ...]
    traces: tuple[str, ...]
    edits: Callable[[Path, Command], tuple[Edit, ...]]
    then: str
    has_plugin: Callable[[Path], bool] = lambda _user_home: False
    """Tell whether a person's agent has memory by a plugin, and needs nothing else."""
    takes_comments: bool = True
    """Whether it reads JSON that has comments in it, or commas at the end."""

    def is_found(self, user_home: Path, path: str) -> bool:
        """Tell whether this person uses the agent; `path` is where programs are looked for."""
        ran = any((user_home / trace).exists() for trace in self.traces)
        return ran or any(shutil.which(program, path=path) for program in self.programs)


def _member(path: Path, place: Sequence[str], value: Any) -> Edit:
    def drop(text: str) -> str:
        return jsonc.drop(text, place) if jsonc.read(text, place) == value else text

    def give_back(text: str, former: str) -> str:
        ours = _runs_server(jsonc.read(text, place))
        return jsonc.give_back(text, place, former) if ours else text

    return Edit(path, lambda text: jsonc.put(text, place, value), drop, give_back)


def _stdio(command: Command) -> dict[str, Any]:
    return {"command": command[0], "args": [*command[1:], "mcp"]}


def _claude_code(user_home: Path, command: Command) -> tuple[Edit, ...]:
    servers = user_home / ".claude.json"
    settings = user_home / ".claude" / "settings.json"
    server = {"type": "stdio", **_stdio(command)}
    return (
        _member(servers, ("mcpServers", "lore"), server),
        Edit(
            settings,
            lambda text: _with_hooks(text, command),
            lambda text: _without_hooks(text, command),
            _former_hooks,
        ),
    )


def find_in_claude_code(user_home: Path, command: Command) -> tuple[bool, bool]:
    """Tell whether Claude Code has Lore's server and its hooks, for the home of a command."""
    servers = user_home / ".claude.json"
    settings = user_home / ".claude" / "settings.json"
    server = jsonc.read(_text_of(servers), ("mcpServers", "lore"))
    hooks = [
        shlex.split(hook["command"])
        for entry in _our_hooks(_text_of(settings), EVENTS[0])
        for hook in entry["hooks"]
    ]
    serves = _runs_server(server) and _is_home(server.get("args", ()), command)
    return serves, any(_is_home(words, command) for words in hooks)


def claude_code_words(command: Command, *, server: bool, hooks: bool) -> tuple[str, ...]:
    """Return the words that give Claude Code Lore's server, its hooks or both for one run."""
    words: list[str] = []
    if server:
        words += ["--mcp-config", json.dumps({"mcpServers": {"lore": _stdio(command)}})]
    if hooks:
        told = {event: [_hook(event, command)] for event in EVENTS}
        words += ["--settings", json.dumps({"hooks": told})]
    return tuple(words)


def _text_of(path: Path) -> str:
    """Return a file as far as it can be read: an agent that cannot read it has nothing from it."""
    try:
        text = path.read_text("utf-8")
        jsonc.parse(text)
    except (OSError, UnicodeDecodeError, InvalidInput):
        return ""
    return text


def _is_home(words: Sequence[Any], command: Command) -> bool:
    """Tell whether words mean the home of a command; without one the environment decides."""
    return "--home" not in words or _home_of(words) == _home_of(command)


def _home_of(words: Sequence[Any]) -> str:
    return str(words[words.index("--home") + 1]) if "--home" in words[:-1] else ""


def _with_hooks(text: str, command: Command) -> str:
    if all(_our_hooks(text, event) == [_hook(event, command)] for event in EVENTS):
        return text  # also as the agent itself writes it, which orders and indents anew
    for event in EVENTS:
        text = jsonc.drop_items(text, ("hooks", event), _is_ours)
    for event in EVENTS:
        text = jsonc.append(text, ("hooks", event), _hook(event, command))
    return text


def _without_hooks(text: str, command: Command) -> str:
    for event in EVENTS:
        text = jsonc.drop_items(text, ("hooks", event), partial(eq, _hook(event, command)))
    return text


def _hook(event: str, command: Command) -> dict[str, Any]:
    words = shlex.join((*command, "hook", event))
    hook = {"hooks": [{"type": "command", "command": words, "timeout": _HOOK_S}]}
    return {"matcher": "Bash", **hook} if event.startswith("PostToolUse") else hook


def _former_hooks(text: str, former: str) -> str:
    for event in EVENTS:
        place = ("hooks", event)
        without = jsonc.drop_items(text, place, _is_ours)
        if without == text:
            continue
        text = without
        for entry in _our_hooks(former, event):
            text = jsonc.append(text, place, entry)
    return text


def _our_hooks(text: str, event: str) -> list[Any]:
    held = jsonc.read(text, ("hooks", event))
    return [*filter(_is_ours, held)] if isinstance(held, list) else []


def _is_ours(entry: Any) -> bool:
    """Tell whether an entry of hooks runs nothing but Lore's."""
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    commands = [str(hook.get("command", "")) for hook in hooks if isinstance(hook, dict)]
    return len(commands) == len(hooks) and all(map(_runs_hook, commands))


def _runs_hook(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return (
        len(words) > 2
        and words[-2] == "hook"
        and words[-1] in EVENTS
        and Path(words[0]).name in _PROGRAMS
    )


def commands_in(tree: Any) -> Iterator[tuple[str, ...]]:
    """Yield the words by which a configuration runs Lore, without what it has it do."""
    waiting = [tree]
    while waiting:  # in a row, for a key may be nested deeper than calls can be
        entry = waiting.pop()
        if isinstance(entry, dict):
            if _runs_server(entry):
                yield tuple(map(str, _server_words(entry)[:-1]))
            elif isinstance(entry.get("command"), str) and _runs_hook(entry["command"]):
                yield tuple(shlex.split(entry["command"])[:-2])
            entry = list(entry.values())
        if isinstance(entry, list):
            waiting.extend(reversed(entry))


def _runs_server(entry: Any) -> bool:
    """Tell whether an entry of servers runs Lore's, from whatever installation."""
    if not isinstance(entry, dict):
        return False
    words = _server_words(entry)
    if len(words) < 2 or words[-1] != "mcp" or not all(isinstance(word, str) for word in words):
        return False
    return Path(words[0]).name in _PROGRAMS


def _server_words(entry: dict[str, Any]) -> list[Any]:
    command, options = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command])]
    return words + (options if isinstance(options, list) else [])


def _codex(user_home: Path, command: Command) -> tuple[Edit, ...]:
    name, table = "mcp_servers.lore", _stdio(command)

    def drop(text: str) -> str:
        return toml_tables.drop(text, name) if toml_tables.find(text, name) == table else text

    def give_back(text: str, former: str) -> str:
        ours = _runs_server(toml_tables.find(text, name))
        return toml_tables.give_back(text, name, former) if ours else text

    return (
        Edit(
            user_home / ".codex" / "config.toml",
            lambda text: toml_tables.put(text, name, table),
            drop,
            give_back,
        ),
    )


def _opencode(user_home: Path, command: Command) -> tuple[Edit, ...]:
    folder = user_home / ".config" / "opencode"
    usual, commented = folder / "opencode.json", folder / "opencode.jsonc"
    server = {"type": "local", "command": [*command, "mcp"], "enabled": True}
    path = commented if commented.exists() and not usual.exists() else usual
    return (_member(path, ("mcp", "lore"), server),)


def _cursor(user_home: Path, command: Command) -> tuple[Edit, ...]:
    return (_member(user_home / ".cursor" / "mcp.json", ("mcpServers", "lore"), _stdio(command)),)


def _gemini(user_home: Path, command: Command) -> tuple[Edit, ...]:
    path = user_home / ".gemini" / "settings.json"
    return (_member(path, ("mcpServers", "lore"), _stdio(command)),)


AGENTS = (
    Agent(
        "claude-code", "Claude Code", ("claude",), (".claude", ".claude.json"), _claude_code,
        "Start a new session and ask: what do you remember about this project?", plugin.is_on,
        takes_comments=False,
    ),
    Agent(
        "codex", "Codex", ("codex",), (".codex",), _codex, "Start a new session; /mcp lists lore.",
    ),
    Agent(
        "opencode", "opencode", ("opencode",), (".config/opencode", ".local/share/opencode"),
        _opencode, "Start a new session; its tools begin with lore_.",
    ),
    Agent(
        "cursor", "Cursor", ("cursor", "cursor-agent"), (".cursor",), _cursor,
        "Restart it; Settings > MCP lists lore.",
    ),
    Agent(
        "gemini", "Gemini CLI", ("gemini",), (".gemini",), _gemini,
        "Start a new session; /mcp lists lore.",
    ),
)  # fmt: skip


def get_agent(name: str) -> Agent:
    """Return the agent of this name, or whose program has it, or raise."""
    for agent in AGENTS:
        if name == agent.name or name in agent.programs:
            return agent
    msg = f"Lore cannot be set up for '{name}'."
    raise InvalidInput(msg, hint=f"It can for {', '.join(agent.name for agent in AGENTS)}.")

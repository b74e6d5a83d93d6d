"""Agents that Lore can be set up for: their files, and what Lore puts into them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any, Protocol

from lore import toml_edit
from lore.errors import InvalidInput, NotFound
from lore.proxy.hook_client import HOOK_EVENTS
from lore.setup import jsonc

PLUGIN_NAME = "lore@lore"
"""The plugin and its marketplace, as Claude Code names them."""

_PROJECT_FILES = ("settings.local.json", "settings.json")


def is_plugin_on(user_home: Path, folder: Path | None = None) -> bool:
    """Return whether Claude Code uses the plugin, everywhere or in the project of a folder."""
    installed = _read_plugin_setting(
        user_home / ".claude" / "plugins" / "installed_plugins.json", "plugins"
    )
    return bool(installed) and next(_plugin_choices(user_home, folder), False)


def _plugin_choices(user_home: Path, folder: Path | None) -> Iterator[bool]:
    """Yield the settings about the plugin, the most specific first."""
    own = (folder / ".claude" / name for name in _PROJECT_FILES) if folder else ()
    for path in (*own, user_home / ".claude" / "settings.json"):
        chosen = _read_plugin_setting(path, "enabledPlugins")
        if chosen is not None:
            yield chosen is True


def _read_plugin_setting(path: Path, table: str) -> Any:
    """Return what a settings file says about the plugin; None if it cannot be read."""
    try:
        return jsonc.read(path.read_text("utf-8"), (table, PLUGIN_NAME))
    except (OSError, UnicodeDecodeError, InvalidInput):
        return None


_HOOK_S = 5
"""The agent aborts a hook after this time; the hook itself gives up much earlier."""

_SESSION_END_S = 3
"""Codex allows no more at the end of a session, and warns at every start of a session."""

_PROGRAMS = ("lore", "lore.exe")

Command = Sequence[str]
"""The words that run `lore`."""


class Editor(Protocol):
    """Functions that edit a text of one format in place."""

    def read(self, text: str, place: Sequence[str] = ()) -> Any: ...  # noqa: D102
    def put(self, text: str, place: Sequence[str], value: Any) -> str: ...  # noqa: D102
    def drop(self, text: str, place: Sequence[str]) -> str: ...  # noqa: D102
    def restore(self, text: str, place: Sequence[str], former: str) -> str: ...  # noqa: D102


def editor_of(path: Path) -> Editor:
    """Return the editor for the format of a file."""
    return toml_edit if path.suffix == ".toml" else jsonc


@dataclass(frozen=True, slots=True)
class Edit:
    """How one file is edited: how to add Lore to its text, and how to remove it."""

    path: Path
    put: Callable[[str], str]
    drop: Callable[[str], str]
    """Remove what `put` writes, and nothing that differs from it."""
    give_back: Callable[[str, str], str]
    """Remove Lore from a text, and restore what a former text had in its place."""
    owns_file: bool = False
    """Whether the whole file is Lore's, so that nothing is left of it without Lore."""


FindEdits = Callable[[Path, Command], tuple[Edit, ...]]
"""Returns the edits for the home folder of a user and a command."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that Lore can be set up for; `traces` are the files it leaves behind."""

    name: str
    title: str
    programs: tuple[str, ...]
    traces: tuple[str, ...]
    edits: FindEdits
    then: str
    has_plugin: Callable[[Path], bool] = lambda _user_home: False
    """Return whether the user's agent already has memory through a plugin."""
    takes_comments: bool = True
    """Whether the agent reads JSON with comments and trailing commas."""

    def is_found(self, user_home: Path, path: str) -> bool:
        """Return whether this user has the agent; `path` is the PATH to search."""
        ran = any((user_home / trace).exists() for trace in self.traces)
        return ran or any(shutil.which(program, path=path) for program in self.programs)


def _member(path: Path, place: Sequence[str], value: Any) -> Edit:
    editor = editor_of(path)

    def drop(text: str) -> str:
        return editor.drop(text, place) if editor.read(text, place) == value else text

    def give_back(text: str, former: str) -> str:
        ours = _runs_server(editor.read(text, place))
        return editor.restore(text, place, former) if ours else text

    return Edit(path, lambda text: editor.put(text, place, value), drop, give_back)


def _stdio(command: Command) -> dict[str, Any]:
    return {"command": command[0], "args": [*command[1:], "mcp"]}


def _claude_code(user_home: Path, command: Command) -> tuple[Edit, ...]:
    servers = user_home / ".claude.json"
    settings = user_home / ".claude" / "settings.json"
    server = {"type": "stdio", **_stdio(command)}
    return (
        _member(servers, ("mcpServers", "lore"), server),
        _hooks_edit(settings, command),
    )


def _hooks_edit(path: Path, command: Command) -> Edit:
    return Edit(
        path,
        lambda text: _with_hooks(text, command),
        lambda text: _without_hooks(text, command),
        _former_hooks,
    )


def _codex(user_home: Path, command: Command) -> tuple[Edit, ...]:
    """Return the edits of Codex: its server, and hooks in the form of Claude Code's."""
    folder = user_home / ".codex"
    return (
        _member(folder / "config.toml", ("mcp_servers", "lore"), _stdio(command)),
        _hooks_edit(folder / "hooks.json", command),
    )


STATUS_LINE = ("statusLine",)
"""Where Claude Code's settings name the program that prints its status line."""

STATUS_LINE_AGENT = "claude-code"


def with_status_line(edits: Sequence[Edit], command: Command, *, puts: bool) -> tuple[Edit, ...]:
    """Return edits of Claude Code that also handle its status line.

    It is always removed with the rest, and added if `puts`. One of another program stays.
    """
    return tuple(
        _also_status_line(edit, command, puts=puts) if edit.path.stem == "settings" else edit
        for edit in edits
    )


def _also_status_line(edit: Edit, command: Command, *, puts: bool) -> Edit:
    value = {"type": "command", "command": shlex.join((*command, "statusline"))}

    def put(text: str) -> str:
        text = edit.put(text)
        present = jsonc.read(text, STATUS_LINE)
        if not puts or present == value:
            return text
        if present is not None and not _prints_status_line(present):
            msg = "Claude Code has another status line already."
            raise InvalidInput(msg, hint="Take that out, or let it call 'lore statusline'.")
        return jsonc.put(text, STATUS_LINE, value)

    def drop(text: str) -> str:
        text = edit.drop(text)
        return jsonc.drop(text, STATUS_LINE) if jsonc.read(text, STATUS_LINE) == value else text

    def give_back(text: str, former: str) -> str:
        text = edit.give_back(text, former)
        ours = _prints_status_line(jsonc.read(text, STATUS_LINE))
        return jsonc.restore(text, STATUS_LINE, former) if ours else text

    return replace(edit, put=put, drop=drop, give_back=give_back)


def _prints_status_line(value: Any) -> bool:
    """Return whether a status line is Lore's, from any installation."""
    words = _split(value.get("command")) if isinstance(value, dict) else []
    return len(words) > 1 and words[-1] == "statusline" and Path(words[0]).name in _PROGRAMS


def _split(command: Any) -> list[str]:
    """Return the words of a shell command; none if it cannot be parsed."""
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []


def find_in_claude_code(user_home: Path, command: Command) -> tuple[bool, bool]:
    """Return whether Claude Code has Lore's server and its hooks, for the home of a command."""
    servers = user_home / ".claude.json"
    settings = user_home / ".claude" / "settings.json"
    server = jsonc.read(_text_of(servers), ("mcpServers", "lore"))
    hooks = [
        shlex.split(hook["command"])
        for entry in _our_hooks(_text_of(settings), HOOK_EVENTS[0])
        for hook in entry["hooks"]
    ]
    serves = _runs_server(server) and _is_home(server.get("args", ()), command)
    return serves, any(_is_home(words, command) for words in hooks)


def claude_code_words(command: Command, *, server: bool, hooks: bool) -> tuple[str, ...]:
    """Return the arguments that add Lore's server, its hooks or both to Claude Code for one run."""
    words: list[str] = []
    if server:
        words += ["--mcp-config", json.dumps({"mcpServers": {"lore": _stdio(command)}})]
    if hooks:
        hook_settings = {event: [_hook(event, command)] for event in HOOK_EVENTS}
        words += ["--settings", json.dumps({"hooks": hook_settings})]
    return tuple(words)


def _text_of(path: Path) -> str:
    """Return the text of a file; '' if it cannot be read."""
    try:
        text = path.read_text("utf-8")
        jsonc.parse(text)
    except (OSError, UnicodeDecodeError, InvalidInput):
        return ""
    return text


def _is_home(words: Sequence[Any], command: Command) -> bool:
    """Return whether words name the home of a command; without one the environment decides."""
    return "--home" not in words or _home_of(words) == _home_of(command)


def _home_of(words: Sequence[Any]) -> str:
    return str(words[words.index("--home") + 1]) if "--home" in words[:-1] else ""


def _with_hooks(text: str, command: Command) -> str:
    if all(_our_hooks(text, event) == [_hook(event, command)] for event in HOOK_EVENTS):
        return text  # also as the agent itself writes it, reordered and reindented
    for event in HOOK_EVENTS:
        text = jsonc.drop_items(text, ("hooks", event), _is_ours)
    for event in HOOK_EVENTS:
        text = jsonc.append(text, ("hooks", event), _hook(event, command))
    return text


def _without_hooks(text: str, command: Command) -> str:
    for event in HOOK_EVENTS:
        text = jsonc.drop_items(text, ("hooks", event), partial(eq, _hook(event, command)))
    return text


_MATCHERS = {
    "PreToolUse": "Task|Agent|spawn_agent",
    "PostToolUse": "Bash|TodoWrite|TaskCreate|TaskUpdate|update_plan|create_goal|update_goal",
    "PostToolUseFailure": "Bash",
}
"""The tools for which an agent calls a hook: subagents, commands, and its list of tasks."""


def _hook(event: str, command: Command) -> dict[str, Any]:
    words = shlex.join((*command, "hook", event))
    timeout = _SESSION_END_S if event == "SessionEnd" else _HOOK_S
    hook = {"hooks": [{"type": "command", "command": words, "timeout": timeout}]}
    return {"matcher": _MATCHERS[event], **hook} if event in _MATCHERS else hook


def _former_hooks(text: str, former: str) -> str:
    for event in HOOK_EVENTS:
        place = ("hooks", event)
        without = jsonc.drop_items(text, place, _is_ours)
        if without == text:
            continue
        text = without
        for entry in _our_hooks(former, event):
            text = jsonc.append(text, place, entry)
    return text


def _our_hooks(text: str, event: str) -> list[Any]:
    entries = jsonc.read(text, ("hooks", event))
    return [*filter(_is_ours, entries)] if isinstance(entries, list) else []


def _is_ours(entry: Any) -> bool:
    """Return whether a hook entry runs nothing but Lore."""
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    commands = [str(hook.get("command", "")) for hook in hooks if isinstance(hook, dict)]
    return len(commands) == len(hooks) and all(map(_runs_hook, commands))


def _runs_hook(command: str) -> bool:
    words = _split(command)
    return (
        len(words) > 2
        and words[-2] == "hook"
        and words[-1] in HOOK_EVENTS
        and Path(words[0]).name in _PROGRAMS
    )


def commands_in(tree: Any) -> Iterator[tuple[str, ...]]:
    """Yield the commands by which a configuration runs Lore."""
    waiting = [tree]
    while waiting:  # iterative, because keys may be nested deeper than the recursion limit
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
    """Return whether a server entry runs Lore, from any installation."""
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


def _server_in(
    file: str, servers: str = "mcpServers"
) -> Callable[[Path, Command], tuple[Edit, ...]]:
    """Return the edits of an agent that lists its servers in one file."""
    return lambda user_home, command: (
        _member(user_home / file, (servers, "lore"), _stdio(command)),
    )


_PACKAGE = Path(__file__).resolve().parents[1]


def find_plugin_file(*names: str) -> Path:
    """Return a file or folder of the plugins: in the package, or in a checkout."""
    folders = (_PACKAGE / "data" / "plugins", _PACKAGE.parents[1] / "plugins")
    for folder in folders:
        if folder.joinpath(*names).exists():
            return folder.joinpath(*names)
    msg = f"The plugin {'/'.join(names)} is not part of this installation."
    raise NotFound(msg, hint="Install Lore again.")


_COMMAND_LINE = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)
"""The line of the plugin for opencode that names the command; it also marks the file as Lore's."""

_MARK = "// Lore's hooks for opencode"


def opencode_plugin(user_home: Path) -> Path:
    """Return the file from which opencode loads Lore's hooks."""
    return user_home / ".config" / "opencode" / "plugins" / "lore.js"


def plugin_commands(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the command that the plugin for opencode runs; none if it was edited to be no list."""
    match = _COMMAND_LINE.search(text) if text.startswith(_MARK) else None
    if match:
        try:
            words = json.loads(match[1])
        except ValueError:
            return
        yield tuple(map(str, words))


def has_opencode_plugin(user_home: Path, command: Command) -> bool:
    """Return whether opencode has Lore's hooks, for the home of a command."""
    try:
        text = opencode_plugin(user_home).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return any(_is_home(words, command) for words in plugin_commands(text))


def _plugin_edit(path: Path, command: Command) -> Edit:
    template = find_plugin_file("opencode", "lore.js").read_text("utf-8")
    line = f"const COMMAND = {json.dumps(list(command))}"
    plugin = _COMMAND_LINE.sub(lambda _: line, template)

    def put(text: str) -> str:
        if text.strip() and not text.startswith(_MARK):
            msg = "This plugin is not Lore's."
            raise InvalidInput(msg, hint="Give it another name.")
        return plugin

    return Edit(
        path,
        put,
        lambda text: "" if text == plugin else text,
        lambda text, former: former if text.startswith(_MARK) else text,
        owns_file=True,
    )


def _opencode(user_home: Path, command: Command) -> tuple[Edit, ...]:
    """Return the edits of opencode: its server, and hooks as a plugin."""
    folder = user_home / ".config" / "opencode"
    usual, commented = folder / "opencode.json", folder / "opencode.jsonc"
    server = {"type": "local", "command": [*command, "mcp"], "enabled": True}
    path = commented if commented.exists() and not usual.exists() else usual
    return (
        _member(path, ("mcp", "lore"), server),
        _plugin_edit(opencode_plugin(user_home), command),
    )


AGENTS = (
    Agent(
        "claude-code", "Claude Code", ("claude",), (".claude", ".claude.json"), _claude_code,
        "Start a new session and ask: what do you remember about this project?", is_plugin_on,
        takes_comments=False,
    ),
    Agent(
        "codex", "Codex", ("codex",), (".codex",),
        _codex, "Start a new session; /mcp lists lore, and /hooks asks you to trust its hooks.",
    ),
    Agent(
        "opencode", "opencode", ("opencode",), (".config/opencode", ".local/share/opencode"),
        _opencode, "Start a new session; its tools begin with lore_.",
    ),
    Agent(
        "cursor", "Cursor", ("cursor", "cursor-agent"), (".cursor",),
        _server_in(".cursor/mcp.json"),
        "Restart it; Settings > MCP lists lore.",
    ),
    Agent(
        "gemini", "Gemini CLI", ("gemini",), (".gemini",),
        _server_in(".gemini/settings.json"),
        "Start a new session; /mcp lists lore.",
    ),
)  # fmt: skip


def get_agent(name: str) -> Agent:
    """Return the agent with this name or program, or raise."""
    for agent in AGENTS:
        if name == agent.name or name in agent.programs:
            return agent
    msg = f"Lore cannot be set up for '{name}'."
    raise InvalidInput(msg, hint=f"It can for {', '.join(agent.name for agent in AGENTS)}.")

"""Tool calls as agents write them: what was done, to what, and which files it concerns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lore.text import lines
from lore.text.later import compile_later

Deed = Literal["run", "read", "edit", "write", "look", "fetch", "other"]
Check = Literal["", "test", "lint", "build"]

TARGET_CHARS = 120
_COMMAND_CHARS = 2_000
"""Of a command, so much is looked at: a script that it carries says no more of it."""

_DEEDS: dict[str, Deed] = {
    **dict.fromkeys(
        ("bash", "shell", "exec_command", "local_shell", "local_shell_call", "container.exec",
         "run_shell_command", "run_terminal_cmd", "execute_command", "terminal"), "run"),
    **dict.fromkeys(("read", "view", "read_file", "readfile", "open_file", "notebookread"), "read"),
    **dict.fromkeys(
        ("edit", "multiedit", "notebookedit", "apply_patch", "patch", "str_replace", "replace",
         "str_replace_based_edit_tool", "str_replace_editor", "edit_file"), "edit"),
    **dict.fromkeys(("write", "write_file", "create_file", "save_file"), "write"),
    **dict.fromkeys(("grep", "glob", "ls", "list", "search", "lsp", "list_directory"), "look"),
    **dict.fromkeys(
        ("webfetch", "websearch", "web_fetch", "web_search", "fetch", "google_web_search"), "fetch"
    ),
}  # fmt: skip
"""The tools of Claude Code, Codex, opencode and Gemini CLI, in lower case."""

COMMAND_FIELDS = ("command", "cmd", "script")
FILE_FIELDS = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename")
_TELLING_FIELDS = (
    "pattern", "url", "query", "description", "skill", "name", "title", "subject", "question",
    "prompt", "id",
)  # fmt: skip

_PATCHED = compile_later(r"^\*\*\* (Update|Add|Delete) File: ([^\n]{1,400})", re.MULTILINE)
_CHECKS: tuple[tuple[Check, re.Pattern[str]], ...] = (
    ("test", compile_later(
        r"\b(?:pytest|go test|(?:cargo|dotnet|swift|mvn|bazel|deno|bun|mix|zig build) test"
        r"|jest|vitest|rspec|phpunit|unittest|tox|nox|ctest|gradlew? test|playwright test"
        r"|(?:npm|yarn|pnpm|mise|just|make|task|uv|poetry|composer|rake)(?: run)? [\w:-]*test)",
        re.IGNORECASE)),
    ("lint", compile_later(
        r"\b(?:golangci-lint|eslint|ruff|mypy|pyright|flake8|pylint|clippy|shellcheck|rubocop"
        r"|go vet|tsc|biome|prettier --check|lint-imports"
        r"|(?:npm|yarn|pnpm|mise|just|make|task)(?: run)? [\w:-]*(?:lint|check|types))\b",
        re.IGNORECASE)),
    ("build", compile_later(
        r"\b(?:go (?:build|install)|cargo (?:build|check)|docker build|gradlew? build|mvn package"
        r"|(?:npm|yarn|pnpm|mise|just|make|task|uv)(?: run)? [\w:-]*build|cmake --build)\b",
        re.IGNORECASE)),
)  # fmt: skip
_STEP = compile_later(r"&&|\|\||;")
_VERB = compile_later(r"[a-z][a-z:-]{1,30}$")
_LOOKING = compile_later(
    r"\s*(?:$|(?:cat|cd|echo|find|grep|head|ls|printf|pwd|rg|sed|tail|test|wc|which)\b)"
)
"""Commands whose next try, for something else, mends nothing."""

_SPEAKING = compile_later(
    r"\s*(?:git|gh|glab|echo|printf|cat|ls|grep|rg|find|sed|cp|mv|rm|mkdir)\b"
)
_WRAPPED = compile_later(
    r"^\s*(?:(?:cd|export|source|set)\s[^&;|\n]{0,300}(?:&&|;)\s*|[A-Za-z_]{1,40}=\S{0,200}\s+(?:&&\s*)?"
    r"|(?:timeout|time|sudo|nice)\s+(?:\d+\w?\s+)?)"
)
_PIPED = compile_later(r"\s*(?:2>&1|\|\|?\s*(?:tail|head|grep|true|echo)\b.*|>\s*/dev/null.*)")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, understood as far as that goes."""

    tool: str
    deed: Deed
    target: str
    command: str = ""
    checks: tuple[Check, ...] = ()
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    created: tuple[str, ...] = ()

    @property
    def check(self) -> Check:
        """Return what it checks first of all; a command may test and lint in one."""
        return self.checks[0] if self.checks else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what two tries of the same thing have in common, one for each check."""
        return self.checks or (f"{self.deed}:{self.target}",)

    @property
    def kin(self) -> frozenset[str]:
        """Return what a second try shares that was made in other words: programs or a file."""
        if self.command:
            steps = () if self.checks else _STEP.split(self.target)
            return frozenset(_program(step) for step in steps if not _LOOKING.match(step))
        if self.changed:
            return frozenset(f"change {file}" for file in self.changed)
        if self.read:
            name = self.read[0].rsplit("/", 1)[-1]
            return frozenset((f"read {name.lstrip('.').split('.')[0]}",))
        return frozenset((self.tool,)) if self.deed == "look" else frozenset()


def read_call(name: str, text: str) -> Call:
    """Read a tool call from its name and its input, JSON or not."""
    tool = name or "tool"
    given = given_fields(text)
    deed = _DEEDS.get(tool.lower().rsplit("__", 1)[-1], "other")
    if deed == "run":
        return _run(tool, command_of(given) if given else text)
    if deed == "edit" and (patch := _patch(tool, first_text(given, ("input", "patch")) or text)):
        return patch
    file = first_text(given, FILE_FIELDS)
    if file and deed in ("read", "edit", "write"):
        if given.get("command") == "view":
            deed = "read"
        return Call(
            tool, deed, lines.one_line(file, TARGET_CHARS),
            read=(file,) if deed == "read" else (),
            changed=(file,) if deed != "read" else (),
            created=(file,) if deed == "write" or given.get("command") == "create" else (),
        )  # fmt: skip
    target = first_text(given, _TELLING_FIELDS) or file or ("" if given else text)
    return Call(tool, deed, lines.one_line(target, TARGET_CHARS))


def given_fields(text: str) -> dict[str, Any]:
    """Return the fields of a call's input, none if it is no JSON object."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def first_text(given: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first field that holds a text."""
    found = (given[name] for name in names if isinstance(given.get(name), str))
    return next((text for text in found if text.strip()), "")


def command_of(given: Mapping[str, Any]) -> str:
    """Return the command line; Codex gives it as a list, often with a shell around it."""
    for name in COMMAND_FIELDS:
        value = given.get(name)
        if isinstance(value, list) and value:
            words = [str(word) for word in value]
            return (
                words[-1]
                if words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
                else " ".join(words)
            )
        if isinstance(value, str):
            return value
    return ""


def _run(tool: str, command: str) -> Call:
    patch = _patch(tool, command) if "*** Begin Patch" in command else None
    if patch:
        return patch
    command = command[:_COMMAND_CHARS]
    bare = bare_command(command)
    target = lines.one_line(bare, TARGET_CHARS)
    return Call(tool, "run", target, command=command, checks=_checks(bare[:400]))


def _checks(command: str) -> tuple[Check, ...]:
    """Return what a command checks; one that only speaks of tests checks nothing."""
    steps = [step for step in _STEP.split(command) if not _SPEAKING.match(step)]
    return tuple(kind for kind, pattern in _CHECKS if any(map(pattern.search, steps)))


def _program(command: str) -> str:
    """Return the program of a command, and what it was told to do if that is a word."""
    words = command.split()[:2]
    return " ".join(word for place, word in enumerate(words) if not place or _VERB.match(word))


def bare_command(command: str) -> str:
    """Return a command without the folder, environment and pipes around it."""
    bare = command.lstrip()
    while found := _WRAPPED.match(bare):
        bare = bare[found.end() :]
    first = bare.split("\n", 1)[0]
    return _PIPED.split(first, maxsplit=1)[0].strip() or first.strip()


def _patch(tool: str, text: str) -> Call | None:
    found = _PATCHED.findall(text)
    if not found:
        return None
    files = tuple(dict.fromkeys(path.strip() for _, path in found))
    created = tuple(path.strip() for verb, path in found if verb == "Add")
    target = lines.one_line(", ".join(files), TARGET_CHARS)
    return Call(tool, "edit", target, changed=files, created=created)

"""Usage: was a memory that a task was given used in what followed?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lore.records import Fragment, Message, UsageSign
from lore.text import call_text
from lore.text.message_features import is_spoken_part
from lore.text.regex import compile_lazy

_ID = compile_lazy(r"\b[0-9a-f]{8}(?:-[0-9a-f]{2,12}){1,4}\b")
"""An id, whole or shortened as briefings show it."""

_CODE = compile_lazy(r"`([^`\n]{3,200})`")
_PATH = compile_lazy(r"(?<![\w/.-])(?:[\w.@~-]*[/\\])*[\w.@-]+\.[A-Za-z]\w{0,9}(?![\w/])")
"""A name with an extension, with or without folders."""

_SPACES = compile_lazy(r"\s+")

_COMMON_FILES = frozenset(
    "readme.md package.json pyproject.toml go.mod go.sum index.ts index.js index.tsx main.py"
    " main.go __init__.py mod.rs lib.rs main.rs cargo.toml claude.md agents.md makefile".split()
)
"""Names that many folders have: alone they identify no file."""

_SHORTEST_COMMAND = 6
_PLAIN_COMMANDS = compile_lazy(r"(?:git (?:status|diff|log|add|commit)|ls|cat|cd|pwd|echo)\b")
"""Commands that every task runs."""


@dataclass(frozen=True, slots=True)
class WhatFollowed:
    """What was said and done after a memory was given: ids read and cited, commands, files."""

    read: frozenset[str] = frozenset()
    cited: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()

    def __or__(self, other: WhatFollowed) -> WhatFollowed:
        """Return both together."""
        return WhatFollowed(
            self.read | other.read, self.cited | other.cited,
            (*self.commands, *other.commands), self.files | other.files,
        )  # fmt: skip


def follow_messages(messages: Iterable[Message]) -> WhatFollowed:
    """Return what an agent said and did in messages."""
    read: set[str] = set()
    cited: set[str] = set()
    commands: list[str] = []
    files: set[str] = set()
    for message in messages:
        if message.role != "assistant":
            continue
        for part in message.parts:
            if part.kind == "tool_call":
                if call_text.is_lore_tool(part.name):
                    read.update(_ID.findall(part.text))
                    continue
                call = call_text.read_call(part.name, part.text)
                commands += [call_text.shown_command(call.command)] if call.command else []
                files.update(_normal(name) for name in (*call.read, *call.changed))
                files.update(_normal(name) for name in _PATH.findall(call.target))
            elif is_spoken_part(part):
                cited.update(_ID.findall(part.text))
    return WhatFollowed(frozenset(read), frozenset(cited), tuple(commands), frozenset(files))


def follow_report(
    actions: Sequence[Mapping[str, Any]], files: Iterable[str], used: Iterable[str]
) -> WhatFollowed:
    """Return what an agent reports about a task: its actions, files, and ids that it used."""
    targets = [str(action.get("target") or "") for action in actions]
    named = {_normal(name) for name in files}
    for target in targets:
        named.update(_normal(name) for name in _PATH.findall(target))
    return WhatFollowed(
        frozenset(), frozenset(used), tuple(filter(None, targets)), frozenset(named)
    )


def find_sign(fragment: Fragment, followed: WhatFollowed) -> UsageSign | None:
    """Return by what a memory was seen to be used, or None."""
    if any(fragment.id.startswith(id_) for id_ in followed.read):
        return "read"
    if any(fragment.id.startswith(id_) for id_ in followed.cited):
        return "cited"
    run = [_flat(command) for command in followed.commands]
    for command in commands_of(fragment):
        if any(command in other for other in run):
            return "command"
    if any(_is_same_file(name, other) for name in files_of(fragment) for other in followed.files):
        return "path"
    return None


def commands_of(fragment: Fragment) -> Iterator[str]:
    """Yield the commands that a memory names; of a warning, those that it recommends."""
    payload = fragment.payload
    if fragment.kind == "anti_pattern" and payload.get("prevention"):
        # To run what fails is no use of it, and 'cd' to the right directory is.
        yield from map(_flat, _CODE.findall(str(payload["prevention"])))
        return
    named = [payload.get("command"), *_listed(payload, "steps")]
    code = [*_CODE.findall(fragment.content)]
    for text in (*named, *code):
        command = _flat(str(text or ""))
        is_command = " " in command and len(command) >= _SHORTEST_COMMAND
        if is_command and not _PLAIN_COMMANDS.match(command):
            yield command


def files_of(fragment: Fragment) -> Iterator[str]:
    """Yield the files that a memory names; of an episode, those that it changed."""
    if fragment.kind == "episode":
        yield from (_normal(str(name)) for name in _listed(fragment.payload, "files_changed"))
        return
    for match in _PATH.finditer(fragment.content):
        yield _normal(match[0])


def _listed(payload: Mapping[str, Any], name: str) -> list[Any]:
    value = payload.get(name)
    return value if isinstance(value, list) else []


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _normal(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").lower()


def _is_same_file(name: str, other: str) -> bool:
    """Return whether two paths can be of one file: one ends with the other, name by name."""
    if name.rsplit("/", 1)[-1] != other.rsplit("/", 1)[-1]:
        return False
    short, long = sorted((name.split("/"), other.split("/")), key=len)
    if len(short) == 1 and short[0] in _COMMON_FILES:
        return False
    return long[-len(short) :] == short

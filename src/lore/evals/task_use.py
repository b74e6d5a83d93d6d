"""What a task used: files, commands, errors and names in what followed a prompt; pure functions.

A thing counts for a text that was given before the task if the text names it, and if neither the
prompt nor the session so far does: an agent has those in view anyway, so naming them helps nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from lore.records import Message
from lore.text import call_text

ThingKind = Literal["file", "command", "fix", "decision"]

KINDS: tuple[ThingKind, ...] = ("file", "command", "fix", "decision")


class Thing(NamedTuple):
    """Something that a task used, and the words by which a text names it."""

    kind: ThingKind
    name: str


_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.@+\-]*(?:[/\\][\w.@+\-]+)+")
_FILE_NAME = re.compile(r"[\w\-]+\.[A-Za-z][A-Za-z0-9]{0,7}")
_STEP = re.compile(r"\s*(?:&&|\|\||[;|\n])\s*")
_PROGRAM = re.compile(r"[\w.~/-]*[A-Za-z][\w.+-]*")
_WORD = re.compile(r"[^\s'\"$(){}<>*\\]+")
_REDIRECT = re.compile(r"\s*\d?>&?\s*\S*|\s*<<.*")
_NAME = re.compile(
    r"\b(?:[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+"
    r"|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|--[a-z][\w-]{3,}|v?\d+\.\d+(?:\.\d+)?)\b"
)
"""A code-like name, an option or a version: what a decision is about."""

_SHORTEST_NAME = 6
_GENERIC_FILES = frozenset(
    "readme.md index.ts index.tsx index.js index.html main.go main.py main.rs mod.rs lib.rs"
    " __init__.py package.json go.mod go.sum cargo.toml makefile claude.md agents.md skill.md"
    " settings.json config.json tsconfig.json changelog.md types.ts utils.ts".split()
)
"""Names that many folders have: they count with their folder only."""

_EVERYDAY = frozenset(
    "ls cat cd grep rg find head tail sed awk echo pwd wc mkdir rm cp mv touch chmod which sleep"
    " true false test export source ps kill sort uniq cut xargs diff tree env printf read set"
    " for if while do done then fi else".split()
)
"""Programs that any session runs: to name one helps nobody."""

_EVERYDAY_GIT = frozenset(
    "status diff log add commit push pull fetch checkout show branch stash rev-parse".split()
)

_GIT_FOLDER = re.compile(r"\bgit -C \S+ ")

_ERROR_CHARS = 60
_FEWEST_ERROR_CHARS = 20


def find_things(messages: Iterable[Message]) -> set[Thing]:
    """Return what the calls, the results and the assistant's words of a task name."""
    things: set[Thing] = set()
    for message in messages:
        for part in message.parts:
            if part.kind == "tool_call":
                things |= _of_call(part.name, part.text)
            elif part.kind == "tool_result":
                line = call_text.error_line(part.text) if "rror" in part.text[:4_000] else ""
                error = _plain_error(line)
                if len(error) >= _FEWEST_ERROR_CHARS:
                    things.add(Thing("fix", error))
            elif message.role == "assistant":
                things |= {Thing("decision", name) for name in _names(part.text)}
    return things


def named(things: Iterable[Thing], text: str) -> set[Thing]:
    """Return the things that a text names."""
    matches: set[Thing] = set()
    if not text:
        return matches
    spoken = _spoken(text)
    names = set(_names(text))
    errors = _plain_error(text, whole=True)
    for thing in things:
        if thing.kind == "decision":
            is_named = thing.name in names
        elif thing.kind == "fix":
            is_named = thing.name in errors
        elif thing.kind == "command":
            is_named = _has_words(spoken, thing.name)
        else:
            is_named = _names_file(spoken, thing.name)
        if is_named:
            matches.add(thing)
    return matches


def _of_call(tool: str, text: str) -> set[Thing]:
    call = call_text.read_call(tool, text)
    things: set[Thing] = set()
    for path in (*call.read, *call.changed):
        things.add(Thing("file", file_key(path)))
    if call.command:
        for step in _steps(call.command):
            things.add(Thing("command", step))
        things |= {Thing("file", file_key(path)) for path in _paths(call.command)}
        things |= {Thing("decision", name) for name in _names(call.command)}
    return {thing for thing in things if thing.name}


def _steps(command: str) -> Iterable[str]:
    """Yield the first words of each step of a command, if they say something."""
    for step in _STEP.split(call_text.bare_command(command)):
        step = _GIT_FOLDER.sub("git ", _REDIRECT.sub("", step))
        words = list(takewhile(_WORD.fullmatch, step.split()))[:3]
        if len(words) < 2 or not _PROGRAM.fullmatch(words[0]) or words[1].startswith(("/", "-")):
            continue
        program = words[0].rsplit("/", 1)[-1].casefold()
        words = [program, *words[1:]]
        is_git = "git" in words[:2] and not _EVERYDAY_GIT.isdisjoint(words)
        if program in _EVERYDAY or is_git:
            continue
        yield " ".join(words).casefold()


def file_key(path: str) -> str:
    """Return the last two names of a path, in lower case; empty if it is no file."""
    names = [name for name in path.replace("\\", "/").split("/") if name not in ("", ".", "..")]
    if not names or not _FILE_NAME.fullmatch(names[-1].lstrip(".")):
        return ""
    return "/".join(names[-2:]).casefold()


def _paths(text: str) -> Iterable[str]:
    return (match.group() for match in _PATH.finditer(text))


def _names_file(spoken: str, key: str) -> bool:
    """Return whether a text names a file by its folder and name, or by a telling name alone."""
    if _has_words(spoken, key):
        return True
    name = key.rsplit("/", 1)[-1]
    return name not in _GENERIC_FILES and _has_words(spoken, name)


def _has_words(spoken: str, words: str) -> bool:
    """Return whether words stand in a text, not within longer words."""
    at = spoken.find(words)
    while at >= 0:
        before = spoken[at - 1] if at else " "
        end = at + len(words)
        after = spoken[end] if end < len(spoken) else " "
        if not (before.isalnum() or before in "_-.") and not (after.isalnum() or after in "_-"):
            return True
        at = spoken.find(words, at + 1)
    return False


def _spoken(text: str) -> str:
    return " ".join(text.replace("\\", "/").casefold().split())


def _names(text: str) -> Iterable[str]:
    for match in _NAME.finditer(text):
        name = match.group()
        if len(name) >= _SHORTEST_NAME or name[-1:].isdigit():
            yield name.casefold()


def _plain_error(text: str, *, whole: bool = False) -> str:
    """Return an error without numbers, quotes and paths, which differ each time."""
    plain = re.sub(r"[\d'\"`]+|(?:\S*/)+", "", text.casefold())
    plain = " ".join(plain.split())
    return plain if whole else plain[:_ERROR_CHARS]


def rare_only(things: Sequence[set[Thing]], most_share: float) -> list[set[Thing]]:
    """Return the things of tasks without names and errors that more than a share of them have.

    A name that every task has, such as that of the product, is no decision; an error that every
    task has is the agent's own, such as an edit of a file that was not read.
    """
    counts: dict[Thing, int] = {}
    for one in things:
        for thing in one:
            counts[thing] = counts.get(thing, 0) + 1
    most = max(2, int(most_share * len(things)))
    return [
        {thing for thing in one if thing.kind in ("file", "command") or counts[thing] <= most}
        for one in things
    ]

"""Commands as steps: what a command line does, without what belongs to one occasion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from lore.text import call_text
from lore.text.regex import PatternFile

_re = PatternFile("command_steps")

Cause = Literal[
    "", "command", "place", "dependency", "repository", "remote", "lock", "access", "conflict",
    "time",
]  # fmt: skip

CAUSES: dict[Cause, str] = {
    "command": "the command or option does not exist here",
    "place": "it does not run in this directory",
    "dependency": "something that it needs was not installed or generated",
    "repository": "the repository or resource has another name",
    "remote": "the remote has newer commits",
    "lock": "another process holds a lock or a port",
    "access": "permission or a login is missing",
    "conflict": "local changes or a conflict are in the way",
    "time": "it takes longer than the time limit",
}
"""Why a command fails, in our words: the output of a tool may say anything."""

Purpose = Literal[
    "test", "lint", "format", "build", "generate", "install", "migrate", "deploy", "release",
    "commit", "push", "pr", "",
]  # fmt: skip
_PURPOSES: tuple[Purpose, ...] = (
    "commit", "push", "pr", "generate", "migrate", "test", "lint", "format", "build", "install",
    "deploy", "release",
)  # fmt: skip
"""In the order in which they are tried: 'git commit' releases nothing."""

MAX_STEP_CHARS = 90


def split_steps(command: str) -> list[str]:
    """Return the steps of a command line that change or check something, as templates."""
    flat = _re.open_quote.sub(" …", _re.quoted.sub("…", command))
    steps = (template(step) for step in _re.between.split(flat))
    return [step for step in steps if step and is_doing(step)]


def template(step: str) -> str:
    """Return a step with placeholders for its paths, numbers, addresses and texts."""
    text = _re.quoted.sub("…", step.strip())
    text = _re.open_quote.sub(" …", text)
    while (bare := _re.redirected.sub("", text)) != text:
        text = bare
    for name, mark in (("url", "<url>"), ("path", "<path>"), ("value", "<n>")):
        text = getattr(_re, name).sub(mark, text)
    if text.startswith(("git push", "git checkout", "git switch", "git merge", "git rebase")):
        text = text.replace("<path>", "<branch>")
    if text.startswith("git add"):
        return "git add <path>"
    words: list[str] = []
    for word in text.split():
        if not (words and words[-1] == word and word[0] in "<…"):
            words.append(word)
    return " ".join(words)


def is_doing(step: str) -> bool:
    """Return whether a step changes or checks something."""
    if _re.read_only.match(step) or _re.asks.search(step):
        return False
    return bool(_re.program.match(step))


def purpose_of(step: str) -> Purpose:
    """Return what a step is for."""
    return next((one for one in _PURPOSES if getattr(_re, f"does_{one}").search(step)), "")


def cause_of(message: str) -> Cause:
    """Return why a command failed, judged by its error; empty if that is unknown."""
    return next((one for one in CAUSES if getattr(_re, f"cause_{one}").search(message)), "")


def is_setup(step: str) -> bool:
    """Return whether a step prepares what another command needs."""
    return bool(_re.setup_step.search(step))


def directory_of(command: str) -> str:
    """Return the directory that a command changes to first."""
    match = _re.leading_directory.match(command)
    return next((group for group in match.groups() if group), "") if match else ""


def whole(command: str) -> str:
    """Return a command without an unclosed text at its end; empty if it is cut off elsewhere."""
    masked = _re.quoted.sub(lambda match: "_" * len(match[0]), command)
    cut = _re.open_quote.search(masked)
    closed = (command[: cut.start()] if cut else command).rstrip()
    return "" if closed.endswith(("…", "\\")) else closed


def program_of(step: str) -> str:
    """Return the program of a step with its subcommand."""
    words = [word for word in step.split() if not word.startswith(("-", "<", "…"))]
    return " ".join(words[:2])


def identity_of(step: str) -> str:
    """Return what the variants of a step have in common: its words without options and values."""
    words = [word for word in step.split() if word[0] not in "-<…./" and "=" not in word]
    return " ".join(words[:3])


def bare(command: str) -> str:
    """Return a command without directory, environment and pipes."""
    return call_text.bare_command(command)


def listed(names: list[str], *, last: str = "and") -> str:
    """Return names as a list in prose."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


def done_steps(targets: Iterator[str]) -> list[str]:
    """Return the different steps of commands in the order in which each was last done."""
    order: dict[str, None] = {}
    for target in targets:
        for step in split_steps(target):
            if len(step) <= MAX_STEP_CHARS:
                order.pop(step, None)
                order[step] = None
    return list(order)

"""Commands that work: those an agent ran that went well, and those it says to use for something."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lore.llm.offline.finding import LOW, MEDIUM, Found, fits
from lore.llm.offline.tool_lines import calls_in
from lore.records import Said
from lore.text import calls, results, statements
from lore.text.statements import Statement
from lore.text.told import stands_alone, strip_opening

_PURPOSES = {
    "test": "run the tests of this project",
    "lint": "lint this project",
    "build": "build this project",
}
_OF_THE_PROJECT = re.compile(
    r"^(?:mise|just|make|task|npm|pnpm|yarn|bun|uv|poetry|tox|nox|cargo|gradle|\./gradlew|mvn|rake"
    r"|composer|dotnet|bazel|deno)\s+\S|^go (?:test|build|vet) \./\.\.\.|^(?:pytest"
    r"|golangci-lint run"
    r"|ruff check|mypy|eslint|tsc)\b"
)
_NARROW = re.compile(
    r"\s-(?:run|k|t|timeout|count)\b|::|\bTest[A-Z]|/tmp/|<<|\$\(|[|;&\"'<>]|\b\w+_test\b|\w/\w"
    r"|/\w+/"
)
"""A command for one test, one file or one moment is not how the project is checked."""

_PROBE = re.compile(
    r"\s--?(?:help|h|version|V|dry-run|list\w*)\b|\s(?:help|list)\b|\|\||\|\s*(?:e?grep|rg|awk|jq|wc"
    r"|sed|xxd)\b"
)
"""A command that asks what it could do, or of which a line is picked, does not do the thing."""

_OPTION = re.compile(r"\s--?\w|\s--\s")
"""With options a command is a variant of the moment, unless it is run again."""

_LONGEST_COMMAND = 80
_COMMAND = re.compile(
    r"`((?:mise|just|make|task|npm|npx|pnpm|yarn|bun|uv|uvx|pip|poetry|cargo|go|git|gh|docker"
    r"|docker-compose|kubectl|helm|terraform|aws|gcloud|brew|apt|systemctl|psql|redis-cli|python3?"
    r"|node|flask|django-admin|pytest|ruff|mypy|curl|ssh|scp|rsync|lore|claude|\./[\w./-]+) [^`\n]"
    r"{2,120})`"
)
_TRIGGER = re.compile(
    r"^(?:to|before|after|when(?:ever)?|for)\s+([^,:`]{6,120}),?:?\s+(?:please\s+)?(?:run|use"
    r"|execute)"
    r"\s`|^(?:run|use|execute)\s`[^`]+`\s+(?:to|before|after|when(?:ever)?"
    r"|for)\s+([^`]{6,120})[.]?$",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:let me|i'll|i ran|running|i will|would|could|might|you should see|should now|i'm|we'll"
    r"|fails?|failed|error|doesn't|does not|instead|now|then|again|tested|passes|try|commit)\b|\?",
    re.IGNORECASE,
)

_TO_DO = re.compile(
    r"\b(?:next steps?|to-?do|remaining|plan|verification|before starting|checklist)\b",
    re.IGNORECASE,
)
"""An item of what is still to be done is done once."""


def find(said: Sequence[Said], later: Sequence[Said] = ()) -> Iterator[Found]:
    """Yield the commands in an exchange that are worth knowing; `later` tells which come again."""
    yield from _ran(said, _times_run((*said, *later)))
    for one in said:
        if one.voice == "assistant":
            for statement in statements.cut(one.text):
                found = _told(one, statement)
                if found is not None:
                    yield found


def _times_run(said: Sequence[Said]) -> Counter[str]:
    """Return how often each command was run."""
    made = (calls_in(one.text) for one in said if one.voice == "assistant")
    read = (calls.read_call(*call) for several in made for call in several)
    return Counter(calls.bare_command(call.command) for call in read if call.command)


def _ran(said: Sequence[Said], times: Counter[str]) -> Iterator[Found]:
    """Yield checks of the project that went well, each once; the call is told, not its output."""
    known: set[str] = set()
    for one, after in pairwise(said):
        made = calls_in(one.text) if one.voice == "assistant" else []
        if len(made) != 1 or after.voice != "tool":
            continue
        call = calls.read_call(*made[0])
        command = calls.bare_command(call.command)
        if not call.check or command in known or not _is_general(command):
            continue
        if _PROBE.search(call.command) or (_OPTION.search(command) and times[command] < 2):
            continue
        if results.verdict_of(call, after.text, failed=False) == "ok":
            known.add(command)
            purpose = _PURPOSES[call.check]
            text = f"To {purpose}, `{command}` works."
            yield Found(text, "workflow", MEDIUM, 1.2, (one.id,),
                        {"command": command, "trigger": f"to {purpose}"})  # fmt: skip


def _is_general(command: str) -> bool:
    return bool(
        len(command) <= _LONGEST_COMMAND
        and _OF_THE_PROJECT.match(command)
        and not _NARROW.search(command)
    )


def _told(one: Said, statement: Statement) -> Found | None:
    text = strip_opening(statement.text)
    command = _COMMAND.search(text)
    if command is None or not fits(text) or _PASSING.search(text):
        return None
    trigger = _TRIGGER.search(text)
    if trigger is None or not stands_alone(text):
        return None
    if _TO_DO.search(f"{statement.heading} {statement.lead}") or _PROBE.search(command[1]):
        return None
    given = {"command": command[1], "trigger": (trigger[1] or trigger[2]).strip()}
    return Found(text, "workflow", LOW, 1.1, (one.id,), given)

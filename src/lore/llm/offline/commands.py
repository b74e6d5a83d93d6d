"""Rules that extract working commands: those an agent ran successfully, and those it recommends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lore.llm.offline.sentence_rules import (
    LOW,
    MEDIUM,
    Finding,
    has_statement_length,
    parse_tool_calls,
)
from lore.records import MessageText
from lore.text import call_text, statements
from lore.text.statements import Statement, stands_alone, strip_opening

_PURPOSES = {
    "test": "run the tests of this project",
    "lint": "lint this project",
    "build": "build this project",
}
_OF_THE_PROJECT = re.compile(
    r"^(?:mise|just|make|task|npm|pnpm|yarn|bun|uv|poetry|tox|nox|cargo|gradle|\./gradlew|mvn|rake"
    r"|composer|dotnet|bazel|deno)\s+\S|^go (?:test|build|vet) \./\.\.\.|^(?:pytest"
    r"|golangci-lint run|ruff check|mypy|eslint|tsc)\b"
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
"""A command that only asks for help or filters output does not do the task."""

_OPTION = re.compile(r"\s--?\w|\s--\s")
"""With options, a command is a one-off variant unless it is run again."""

_MAX_COMMAND_CHARS = 80
_COMMAND = re.compile(
    r"`((?:mise|just|make|task|npm|npx|pnpm|yarn|bun|uv|uvx|pip|poetry|cargo|go|git|gh|docker"
    r"|docker-compose|kubectl|helm|terraform|aws|gcloud|brew|apt|systemctl|psql|redis-cli|python3?"
    r"|node|flask|django-admin|pytest|ruff|mypy|curl|ssh|scp|rsync|lore|claude|\./[\w./-]+) [^`\n]"
    r"{2,120})`"
)
_TRIGGER = re.compile(
    r"^(?:to|before|after|when(?:ever)?|for)\s+([^,:`]{6,120}),?:?\s+(?:please\s+)?(?:run|use"
    r"|execute)\s`|^(?:run|use|execute)\s`[^`]+`\s+(?:to|before|after|when(?:ever)?"
    r"|for)\s+([^`]{6,120})[.]?$",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"\b(?:let me|i'll|i ran|running|i will|would|could|might|you should see|should now|i'm|we'll"
    r"|fails?|failed|error|doesn't|does not|instead|now|then|again|tested|passes|try|commit)\b|\?",
    re.IGNORECASE,
)

_TO_DO = re.compile(
    r"\b(?:next steps?|to-?do|remaining|plan|verification|before starting|checklist)\b",
    re.IGNORECASE,
)
"""Items of a to-do list are done once."""


def find_commands(
    messages: Sequence[MessageText], later: Sequence[MessageText] = ()
) -> Iterator[Finding]:
    """Yield the commands in an exchange that are worth keeping; `later` shows which ones recur."""
    yield from _successful_checks(messages, _count_runs((*messages, *later)))
    for one in messages:
        if one.voice == "assistant":
            for statement in statements.split_statements(one.text):
                finding = _recommended_command(one, statement)
                if finding is not None:
                    yield finding


def _count_runs(messages: Sequence[MessageText]) -> Counter[str]:
    calls = (parse_tool_calls(one.text) for one in messages if one.voice == "assistant")
    read = (call_text.read_call(*call) for several in calls for call in several)
    return Counter(call_text.bare_command(call.command) for call in read if call.command)


def _successful_checks(messages: Sequence[MessageText], times: Counter[str]) -> Iterator[Finding]:
    """Yield each successful check of the project once, by its call and not by its output."""
    reported: set[str] = set()
    for one, after in pairwise(messages):
        calls = parse_tool_calls(one.text) if one.voice == "assistant" else []
        if len(calls) != 1 or after.voice != "tool":
            continue
        call = call_text.read_call(*calls[0])
        command = call_text.bare_command(call.command)
        if not call.check or command in reported or not _is_general(command):
            continue
        if _PROBE.search(call.command) or (_OPTION.search(command) and times[command] < 2):
            continue
        if call_text.classify_result(call, after.text, failed=False) == "ok":
            reported.add(command)
            purpose = _PURPOSES[call.check]
            text = f"To {purpose}, `{command}` works."
            yield Finding(text, "workflow", MEDIUM, 1.2, (one.id,),
                        {"command": command, "trigger": f"to {purpose}"})  # fmt: skip


def _is_general(command: str) -> bool:
    return bool(
        len(command) <= _MAX_COMMAND_CHARS
        and _OF_THE_PROJECT.match(command)
        and not _NARROW.search(command)
    )


def _recommended_command(one: MessageText, statement: Statement) -> Finding | None:
    text = strip_opening(statement.text)
    command = _COMMAND.search(text)
    if command is None or not has_statement_length(text) or _TRANSIENT.search(text):
        return None
    trigger = _TRIGGER.search(text)
    if trigger is None or not stands_alone(text):
        return None
    if _TO_DO.search(f"{statement.heading} {statement.lead}") or _PROBE.search(command[1]):
        return None
    payload = {"command": command[1], "trigger": (trigger[1] or trigger[2]).strip()}
    return Finding(text, "workflow", LOW, 1.1, (one.id,), payload)

"""Routine commands: what several sessions of a project ran with success, for a new task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from lore.records import Episode
from lore.text import call_text

FEWEST_SESSIONS = 2
"""What one session ran may have been a try."""

MOST_COMMANDS = 6
_MOST_WORDS = 4
_STEP = re.compile(r"\s*(?:&&|\|\||[;|\n])\s*")
_REDIRECT = re.compile(r"\s*\d?>&?\s*\S*|\s*<<.*")
_WORD = re.compile(r"[^\s'\"$(){}<>*\\=]+")
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]*")
_EVERYDAY = frozenset(
    "ls cat cd grep rg find head tail sed awk echo pwd wc mkdir rm cp mv touch chmod which sleep"
    " true false test export source ps kill sort uniq cut xargs diff tree env printf read set curl"
    " for if while do done then fi else git rtk python python3 node perl xxd".split()
)
"""Programs that any session runs, or whose first words say nothing."""


def find_routine(episodes: Sequence[Episode], goal: str) -> list[str]:
    """Return the commands that most sessions ran with success, which the goal does not name.

    A longer command that begins with a more frequent one is left out.
    """
    sessions: Counter[str] = Counter()
    for episode in episodes:
        sessions.update(set(_commands(episode)))
    spoken = " ".join(goal.casefold().split())
    routine = [
        command
        for command, count in sessions.most_common()
        if count >= FEWEST_SESSIONS and command.casefold() not in spoken
    ]
    return _without_longer(routine)[:MOST_COMMANDS]


def _commands(episode: Episode) -> Iterator[str]:
    for action in episode.actions:
        if action.result != "ok":
            continue
        call = call_text.read_call(action.action, action.target)
        for step in _STEP.split(call_text.bare_command(call.command)):
            words = list(takewhile(_WORD.fullmatch, _REDIRECT.sub("", step).split()))
            words = list(takewhile(_is_telling, words))[:_MOST_WORDS]
            if len(words) > 1 and _PROGRAM.fullmatch(words[0]) and words[0] not in _EVERYDAY:
                yield " ".join(words)


def _is_telling(word: str) -> bool:
    """Return whether a word belongs to the routine: neither a file of one task nor an ellipsis."""
    return "…" not in word and not word.startswith("/") and word.count("/") < 2


def _without_longer(commands: Iterable[str]) -> list[str]:
    shortest: list[str] = []
    for command in commands:
        if not any(command.startswith(f"{other} ") for other in shortest):
            shortest.append(command)
    return shortest

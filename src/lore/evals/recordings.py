"""Recordings: coding sessions as they were, and which of them worked on the same thing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from lore.errors import EvaluationError
from lore.evals.trials import rows

SESSIONS, COMMITS = "coding-sessions.jsonl.gz", "coding-queries.jsonl.gz"

FEW = 0.04
"""A file that no more than this share of the sessions changed says what a session was about."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said in a recorded session."""

    session: str
    at: datetime
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session, with the files and commits that came out of it."""

    name: str
    turns: tuple[Turn, ...]
    files: frozenset[str]
    commits: frozenset[str]


class Link:
    """What sessions have in common: files, and commits."""

    def __init__(self, recordings: Sequence[Recording], commits: dict[str, set[str]]) -> None:
        uses = Counter(file for recording in recordings for file in recording.files)
        rare = {file for file, count in uses.items() if count <= FEW * len(recordings)}
        self._files = {one.name: one.files for one in recordings}
        self._rare = {one.name: one.files & rare for one in recordings}
        self._commits = {one.name: one.commits | commits.get(one.name, set()) for one in recordings}

    def between(self, one: str, other: str) -> tuple[bool, bool]:
        """Tell whether two sessions have a file or commit in common, and a rare file or commit."""
        if one not in self._files or other not in self._files:
            return False, False
        commit = bool(self._commits[one] & self._commits[other])
        file = bool(self._files[one] & self._files[other])
        return commit or file, commit or bool(self._rare[one] & self._rare[other])

    def chance(self, names: Sequence[str]) -> tuple[float, float]:
        """Return how often that holds for any session and one before it."""
        pairs = [self.between(b, a) for i, b in enumerate(names) for a in names[:i]]
        count = max(1, len(pairs))
        return sum(pair[0] for pair in pairs) / count, sum(pair[1] for pair in pairs) / count


def read_recordings(data: Path) -> list[Recording]:
    """Return the recorded sessions of a folder, oldest first."""
    source = data / SESSIONS
    if not source.exists():
        msg = f"There is no {SESSIONS} in {data}."
        raise EvaluationError(msg)
    try:
        found = [_recording(raw) for raw in rows(source)]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        msg = f"{SESSIONS} cannot be read: {error!r}"
        raise EvaluationError(msg) from error
    spoken = [recording for recording in found if recording.turns]
    return sorted(spoken, key=lambda recording: recording.turns[0].at)


def read_links(data: Path, recordings: Sequence[Recording]) -> Link:
    """Return what sessions have in common, with the commits of the queries beside them."""
    commits: dict[str, set[str]] = defaultdict(set)
    if (data / COMMITS).exists():
        for place, raw in enumerate(rows(data / COMMITS)):
            for name in raw["sessions"]:
                commits[name].add(f"query {place}")
    return Link(recordings, commits)


def _recording(raw: dict[str, object]) -> Recording:
    name, turns = str(raw["sid"]), raw["turns"]
    assert isinstance(turns, list)
    said: list[Turn] = []
    at = _moment(str(raw["created"]))
    for role, text, time in turns:
        at = _moment(time) if time else at
        if role in ("user", "assistant") and text.strip():
            said.append(Turn(name, at, role, text))
    return Recording(name, tuple(said), _texts(raw.get("files")), _texts(raw.get("checkpoints")))


def _texts(value: object) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

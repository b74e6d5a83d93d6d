"""Real texts for `latency`: coding sessions, chats and passages from a folder of evaluation data.

The folder holds the files that `lore eval retrieval` reads. Where a memory needs more messages than
the folder has, its sessions come again under other names and with their words rotated, so that
deduplication keeps them apart.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any

from corpus import NOW, TALK_MESSAGES, Talk

LONGEST = 20_000
"""Characters of a message that are kept; tool results beyond it are rare."""

_ROLES = {"user": "user", "tool": "assistant", "result": "tool"}


@dataclass(frozen=True, slots=True)
class RealTexts:
    """Talks, notes and questions over the evaluation data in a folder."""

    folder: Path

    def talks(self, messages: int) -> Iterator[Talk]:
        """Yield sessions of at most fifty messages until they have so many messages."""
        remaining = messages
        for round_number in count():
            for talk in self._all_talks(round_number):
                kept = min(remaining, len(talk.texts))
                yield _first(talk, kept)
                remaining -= kept
                if not remaining:
                    return

    def notes(self, count: int) -> Iterator[tuple[str, str]]:
        """Yield passages as fragments without a project."""
        passages = (
            (passage["text"], "")
            for path in sorted(self.folder.glob("multihop-*.jsonl.gz"))
            for row in _rows(path)
            for passage in row["passages"]
            if passage["text"]
        )
        return islice(passages, count)

    def questions(self) -> list[str]:
        """Return the questions that people asked about the coding sessions and chats."""
        coding = [
            row["question"]
            for path in sorted(self.folder.glob("coding-qa*.jsonl.gz"))
            for row in _rows(path)
        ]
        chats = [
            question["question"]
            for row in _rows(self.folder / "chats-own.jsonl.gz")
            for question in row["questions"]
        ]
        every = max(1, len(chats) // max(1, len(coding)))
        mixed = zip(coding, chats[::every], strict=False)
        return [question for pair in mixed for question in pair]

    def _all_talks(self, round_number: int) -> Iterator[Talk]:
        for path in sorted(self.folder.glob("coding-sessions*.jsonl.gz")):
            for row in _rows(path):
                yield from _coding_talks(row, path.name.split(".")[0], round_number)
        for row in _rows(self.folder / "chats-own.jsonl.gz"):
            yield from _chat_talks(row, round_number)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _coding_talks(row: dict[str, Any], project: str, round_number: int) -> Iterator[Talk]:
    turns = [(role, text[:LONGEST]) for role, text, _ in row["turns"] if text.strip()]
    started = datetime.fromisoformat(row["created"])
    for start in range(0, len(turns), TALK_MESSAGES):
        part = turns[start : start + TALK_MESSAGES]
        yield Talk(
            name=f"{row['sid']}-{start}-{round_number}",
            project=f"/code/{project}-{round_number}",
            title=part[0][1][:60],
            files=tuple(row.get("files") or ())[:5],
            started_at=started if started.tzinfo else started.replace(tzinfo=UTC),
            roles=[_ROLES.get(role, "assistant") for role, _ in part],
            texts=[_vary(text, round_number) for _, text in part],
        )


def _chat_talks(row: dict[str, Any], round_number: int) -> Iterator[Talk]:
    turns = row["turns"]
    for session in dict.fromkeys(turn["session"] for turn in turns):
        texts = [turn["text"] for turn in turns if turn["session"] == session and turn["text"]]
        yield Talk(
            name=f"{row.get('id', turns[0]['text'][:20])}-{session}-{round_number}",
            project="",
            title="",
            files=(),
            started_at=NOW,
            roles=["user" if place % 2 == 0 else "assistant" for place in range(len(texts))],
            texts=[_vary(text, round_number) for text in texts],
        )


def _vary(text: str, round_number: int) -> str:
    """Return a text as it is in the first round, and with its words rotated in later ones."""
    if not round_number:
        return text
    said = text.split(" ")
    middle = round_number * 7 % len(said)
    return " ".join(said[middle:] + said[:middle])


def _first(talk: Talk, messages: int) -> Talk:
    return Talk(
        talk.name, talk.project, talk.title, talk.files, talk.started_at,
        talk.roles[:messages], talk.texts[:messages],
    )  # fmt: skip

"""A generated long session for replays: a user asks, an assistant calls tools."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from lore.evals.datasets import ReplaySession
from lore.evals.replay import (
    DEFAULT_CLIENT,
    STRATEGIES,
    RememberedSession,
    ReplayClient,
    ReplayOutcome,
    ReplaySetting,
    replay_session,
)
from lore.records.gateway import Distilled, ModelPrice

PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 40_000)


def message(index: int, role: str, content: str, at_s: float) -> dict[str, object]:
    return {
        "index": index,
        "role": role,
        "content": content,
        "tokens": len(content) // 4,
        "timestamp": int(at_s * 1000),
    }


def write(folder: Path, *, turns: int = 6, answers: int = 8, size: int = 3_000) -> Path:
    """Write a session in which a person asks and an assistant calls tools."""
    said: list[dict[str, object]] = []
    at_s = 1_750_000_000.0
    for turn in range(turns):
        at_s += 900
        said.append(message(len(said), "user", f"Please mend harbour number {turn}.", at_s))
        for step in range(answers):
            at_s += 20
            words = f"Looking at pier {turn}.{step}, berth fee {100 * turn + step} crowns."
            output = f"\n[tool:bash] line {turn}.{step}\n" + "ropes and lamps\n" * (size // 16)
            said.append(message(len(said), "assistant", words + output, at_s))
    questions = [
        {
            "question": "What is the berth fee at pier 2.3?",
            "answer": "The berth fee is 203 crowns.",
            "type": "detail",
            "message_index": 2 * (answers + 1) + 4,
        }
    ]
    raw = {"session_id": "harbour", "project_path": "/code/harbour", "messages": said}
    path = folder / "long-session-harbour.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.write(json.dumps(raw | {"questions": questions}) + "\n")
    return path


def logs(talk: ReplaySession) -> RememberedSession:
    """Return a log of each turn, there from the next one on."""
    ends = [n for n, one in enumerate(talk.messages) if one.role == "user" and n]
    made = [
        (
            talk.entry_counts[end - 1],
            Distilled(f"log-{end}", f"turn until {end}", 60, talk.entry_counts[end - 1]),
        )
        for end in ends
    ]
    return RememberedSession((), tuple(made))


def outcomes(
    talk: ReplaySession, model: str = "claude", client: ReplayClient = DEFAULT_CLIENT
) -> dict[str, ReplayOutcome]:
    setting = ReplaySetting(model, PRICE, logs(talk), (True,), client)
    return {name: replay_session(talk, name, setting) for name in STRATEGIES}

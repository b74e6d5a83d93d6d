"""Sessions of coding agents, written in a few words, and a memory that captures them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from lore.embed.embedder import NoEmbedder
from lore.llm.summarizer import Summarizer
from lore.memory import Memory
from lore.records import Fragment, NewMessage, Part
from lore.settings import Settings
from lore.store import distillations, fragments, items, sessions
from tests.fakes import FixedClock

Step = tuple[str, str, str]
"""A tool, its target, and its result; a result that begins with '!' is a failure."""


def ran(command: str, result: str = "ok") -> Step:
    return ("Bash", command, result)


def edited(file: str) -> Step:
    return ("Edit", file, "done")


def open_tasks(home: Path, clock: FixedClock, embedder: Any = None) -> Memory:
    chosen = NoEmbedder() if embedder is None else embedder
    return Memory.open(config=Settings(home=home), embedder=chosen, now=clock)


def do_task(
    memory: Memory,
    name: str,
    goal: str,
    steps: Sequence[Step],
    *,
    project: str = "/code/app",
    reply: str = "All done.",
) -> str:
    """Capture a session in which an agent works on a goal, and return the id of its episode."""
    at = memory.database.now()
    new = [NewMessage("user", (Part("text", goal),), at, key="goal")]
    for place, (tool, target, result) in enumerate(steps):
        at += timedelta(seconds=5)
        field = "command" if tool == "Bash" else "file_path"
        call = Part("tool_call", json.dumps({field: target}), name=tool, call_id=str(place))
        is_failed = result.startswith("!")
        came = Part("tool_result", result.lstrip("!"), call_id=str(place), failed=is_failed)
        new.append(NewMessage("assistant", (call,), at, key=f"c{place}", origin="assistant"))
        new.append(NewMessage("tool", (came,), at, key=f"r{place}", origin="tool"))
    new.append(NewMessage("assistant", (Part("text", reply),), at, key="end", origin="assistant"))
    memory.capture(name, new, project=project)
    memory.sessions.episode(name)
    with memory.database.read() as db:
        n = distillations.find_episode(db, sessions.get_session_number(db, name))
        assert n is not None
        return items.ids_of(db, [n])[n]


def stored(memory: Memory, id_: str) -> Fragment:
    """Return a fragment with its payload, whatever state it is in."""
    with memory.database.read() as db:
        return fragments.get(db, items.resolve(db, id_).n)


def use_chat(memory: Memory, summarizer: Summarizer) -> None:
    """Let a memory use a scripted chat."""
    memory.context.summarizer = summarizer

"""What progressive disclosure costs and saves over real coding sessions in order of time.

    uv run python benchmarks/disclosure.py [--sessions FILE] [--project NAME] [--first N]
                                           [--without-corrections] [--show N]

Before each session the memory holds the sessions before it. The session gets the index at its
start and loads what it needs for each task that a person asks for in it; then it is captured and
digested without a chat, and the token counts are checked as at the end of every session. The
baseline is the whole memory of the project, loaded once a session.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from episodes import messages_of
from lore.capture.message_capture import Conversation, capture
from lore.evals.datasets import read_rows
from lore.memory import Memory
from lore.records import EconomicsReport, LoadedContext, Message, NewMessage
from lore.text import episodes as episode_text

SESSIONS = (
    Path(__file__).parents[1] / ".." / "shared" / "bench" / "coding-sessions-ohmyposh.jsonl.gz"
)


class Time:
    """A clock that stands where the replay is."""

    def __init__(self) -> None:
        self.at = datetime(2020, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.at


@dataclass(frozen=True, slots=True)
class Replayed:
    """A session: what its loads gave, and what memory cost and saved in it."""

    sid: str
    loads: tuple[tuple[str, LoadedContext], ...]
    report: EconomicsReport
    corrected: tuple[str, ...]


def replay(
    memory: Memory, clock: Time, rows: list[dict[str, Any]], project: str, *, corrects: bool
) -> Iterator[Replayed]:
    """Replay sessions in order; each knows what was learned in those before it."""
    for raw in rows:
        messages, title = messages_of(raw)
        spoken = [one for one in messages if any(part.text.strip() for part in one.parts)]
        if not spoken:
            continue
        talk = Conversation(
            raw["sid"], agent=raw["agent"] or "coding", project=f"/code/{project}", title=title
        )
        clock.at = spoken[0].created_at
        _capture(memory, talk, spoken[:1])
        memory.tasks.for_session_start(session=raw["sid"])
        loads = []
        for goal, at in _goals(spoken):
            clock.at = max(clock.at, at)
            loads.append((goal, memory.tasks.load(goal, session=raw["sid"])))
        clock.at = max(clock.at, spoken[-1].created_at)
        memory.database.write(lambda _db: None)  # after everything that was submitted
        done = memory.tasks.check_economics("session_end", session=raw["sid"]) if corrects else []
        report = memory.tasks.economics(session=raw["sid"])
        yield Replayed(raw["sid"], tuple(loads), report, tuple(done))
        _capture(memory, talk, spoken)
        memory.sessions.episode(raw["sid"])
        memory.digest.curate(raw["sid"])
        memory.maintenance.embed_waiting()


def _capture(memory: Memory, talk: Conversation, messages: list[Message]) -> None:
    new = [NewMessage(m.role, m.parts, m.created_at, key=m.id, origin=m.origin) for m in messages]
    capture(memory.database, talk, new)


def _goals(messages: list[Message]) -> Iterator[tuple[str, datetime]]:
    """Yield what a person asked for in a session, and when."""
    episode = episode_text.derive_episode(messages)
    at = {message.ordinal: message.created_at for message in messages}
    for task in episode.tasks if episode else ():
        if task.goal:
            yield task.goal, at.get(task.first, messages[0].created_at)


def describe(sessions: list[Replayed]) -> Iterator[str]:
    """Yield the figures of a replay."""
    layers = Counter(loaded.layer for one in sessions for _, loaded in one.loads)
    reports = [one.report for one in sessions if one.report.baseline_tokens]
    discovery = sum(one.discovery_tokens for one in reports)
    read = sum(one.read_tokens for one in reports)
    baseline = sum(one.baseline_tokens for one in reports)
    reading = [one for one in reports if one.ratio is not None]
    yield f"sessions, tasks            {len(sessions)}, {sum(layers.values())}"
    yield f"sessions with a memory     {len(reports)}"
    yield f"answered by                {dict(layers)}"
    yield f"discovery, read, baseline  {discovery}, {read}, {baseline}"
    yield f"ratio (all; median)        {discovery / max(1, read):.3f};" + (
        f" {statistics.median(one.ratio or 0 for one in reading):.3f}"
        f" of {len(reading)} sessions that read"
        if reading
        else " none"
    )
    of_reading = sum(one.discovery_tokens for one in reading)
    yield f"ratio of those sessions    {of_reading / max(1, read):.3f}"
    yield (
        f"savings (all; median)      {100 * (1 - (discovery + read) / max(1, baseline)):.1f} %;"
        + (f" {statistics.median(one.savings_vs_full_load for one in reports):.1f} %")
    )
    indexes = [one.layer1_tokens / one.layer1_loads for one in reports if one.layer1_loads]
    yield f"tokens of layer 1 a load   {statistics.mean(indexes):.0f}"
    scanned = [x.timeline_tokens for one in sessions for _, x in one.loads if x.timeline_tokens]
    available = [x.timeline_tokens_available for s in sessions for _, x in s.loads]
    if scanned:
        yield (f"timeline scanned, whole    {statistics.mean(scanned):.0f},"
               f" {statistics.mean([x for x in available if x]):.0f}")  # fmt: skip
    for one in sessions:
        for line in one.corrected:
            yield f"corrected after {one.sid[:8]}   {line}"


def main() -> None:
    """Replay sessions and print what the layers cost and saved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, default=SESSIONS)
    parser.add_argument("--project", default="project")
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--without-corrections", action="store_true")
    chosen = parser.parse_args()
    if not chosen.sessions.exists():
        sys.exit("The evaluation data is not here: nothing to measure.")
    rows = sorted(read_rows(chosen.sessions), key=lambda row: row["created"])[: chosen.first]
    clock, began = Time(), time.process_time()
    with tempfile.TemporaryDirectory() as home, Memory.open(home, now=clock) as memory:
        corrects = not chosen.without_corrections
        sessions = list(replay(memory, clock, rows, chosen.project, corrects=corrects))
    for line in describe(sessions):
        print(line)
    print(f"CPU seconds                {time.process_time() - began:.0f}")
    for one in sessions[-chosen.show :] if chosen.show else ():
        for goal, loaded in one.loads:
            print(f"\n{one.sid[:8]} {loaded.layer:9} {goal[:110]!r}")
            for topic in loaded.topics:
                print(f"    {topic.relevance:.2f} {topic.tokens:5} {topic.title}")


if __name__ == "__main__":
    main()

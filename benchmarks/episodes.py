"""How many real coding sessions get a goal and an outcome, without a model.

    uv run python benchmarks/episodes.py [--samples 30] [--seed 1] [--show SESSION]

Reads coding-sessions.jsonl.gz of the evaluation data; the samples are for judging by eye.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from lore.evals.datasets import read_rows
from lore.records import Episode, Message, Origin, Part, Role
from lore.text import episodes, tokens

SESSIONS = Path(__file__).parents[1] / ".." / "shared" / "bench" / "coding-sessions.jsonl.gz"
_FIELDS = {"Bash": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path"}
_FAILED = ("<tool_use_error>", "Exit code ")
_WHO: dict[str, tuple[Role, Origin]] = {
    "user": ("user", "user"),
    "assistant": ("assistant", "assistant"),
    "tool": ("assistant", "assistant"),
    "result": ("tool", "tool"),
}


def messages_of(raw: dict[str, Any]) -> tuple[list[Message], str]:
    """Return a session's turns as messages, calls and results paired in order, and its title."""
    found: list[Message] = []
    title = ""
    waiting: deque[str] = deque()
    at = _moment(raw["created"])
    for place, (who, text, when) in enumerate(raw["turns"]):
        at = _moment(when) if when else at
        if who == "summary":
            title = title or text
            continue
        part = _part(who, text, str(place), waiting)
        role, origin = _WHO[who]
        size = tokens.count(text)
        found.append(Message(f"m{place}", raw["sid"], place, role, (part,), size, at, origin))
    return found, title


def _part(who: str, text: str, id_: str, waiting: deque[str]) -> Part:
    if who == "tool":
        name, _, target = text.partition(" ")
        waiting.append(id_)
        given = target  # Codex: the arguments, as JSON
        if not target.startswith("{"):
            given = orjson.dumps({_FIELDS.get(name, "description"): target}).decode()
        return Part("tool_call", given, name=name, call_id=id_)
    if who == "result":
        call_id = waiting.popleft() if waiting else ""
        return Part("tool_result", text, call_id=call_id, failed=text.startswith(_FAILED))
    return Part("text", text)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _show(sid: str, episode: Episode) -> None:
    print(f"\n--- {sid}")
    print(episodes.format_episode(episode))


def main() -> None:
    """Derive an episode of every session, count, and print a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", default="")
    chosen = parser.parse_args()
    if not SESSIONS.exists():
        sys.exit("The evaluation data is not here: nothing to measure.")
    told: dict[str, Episode] = {}
    count = turns = 0
    spent_s = 0.0
    for raw in read_rows(SESSIONS):
        messages, title = messages_of(raw)
        count += 1
        turns += len(messages)
        started = time.thread_time()
        episode = episodes.derive_episode(messages, agent=raw["agent"] or "", title=title)
        spent_s += time.thread_time() - started
        if episode:
            told[raw["sid"]] = episode
    found = list(told.values())
    sizes = sorted(tokens.count(episodes.format_episode(episode)) for episode in found)
    print(f"sessions               {count}")
    print(f"with an episode        {len(found)}")
    print(f"with a goal            {sum(bool(e.goal) for e in found)}")
    print(f"with an outcome        {sum(e.outcome != 'unknown' for e in found)}")
    print(f"outcomes               {dict(Counter(e.outcome for e in found).most_common())}")
    print(f"with several tasks     {sum(len(e.tasks) > 1 for e in found)}")
    print(f"errors, of them fixed  {sum(len(e.errors) for e in found)}"
          f", {sum(bool(x.resolution) for e in found for x in e.errors)}")  # fmt: skip
    print(f"with commits           {sum(bool(e.commits) for e in found)}")
    print(f"with files changed     {sum(bool(e.files_changed) for e in found)}")
    print(f"tokens of the content  median {sizes[len(sizes) // 2]}, most {sizes[-1]}")
    print(f"CPU per 1,000 messages {spent_s / turns * 1e6:.0f} ms")
    for reason, times in Counter(f"{e.outcome}: {e.reason[:60]}" for e in found).most_common(20):
        print(f"   {times:>4}  {reason}")
    sample = random.Random(chosen.seed).sample(sorted(told), min(chosen.samples, len(told)))
    for sid in [chosen.show] if chosen.show else sample:
        _show(sid, told[sid])


if __name__ == "__main__":
    main()

"""How much of what curation keeps without a model is worth keeping: a sample to judge by eye.

    uv run python benchmarks/junk.py [--seed 1] [--samples 100] [--sessions 284] [--beam 20]
                                         [--of coding|beam|locomo] [--per-set N] [--home FOLDER]

Reads the evaluation data, curates it offline into a memory of its own, and prints fragments,
numbered, each with the message that it came from. The sample is in proportion to the sets unless
`--per-set` asks for as many of each.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from episodes import messages_of
from lore.capture.message_capture import Conversation, capture
from lore.digest import extraction
from lore.digest.drafts import CurationContext
from lore.evals.datasets import beam_sessions, locomo_sessions, read_rows
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Fragment, NewMessage
from lore.store import fragments, items, messages, sessions
from lore.text import message_features, tokens

BENCH = Path(__file__).parents[1] / ".." / "shared" / "bench"
CONTEXT_CHARS = 300
SETS = ("coding", "beam", "locomo")

Numbered = tuple[int, Fragment]


def coding_talks(path: Path, most: int) -> Iterator[tuple[Conversation, list[NewMessage]]]:
    """Yield the coding sessions with their tool traffic."""
    for raw in list(read_rows(path))[:most]:
        found, title = messages_of(raw)
        new = [
            NewMessage(m.role, m.parts, m.created_at, key=m.id, origin=m.origin)
            for m in found
            if any(part.text.strip() for part in m.parts)
        ]
        if new:
            yield Conversation(raw["sid"], agent="coding", project="/code/cli", title=title), new


def talks(chosen: argparse.Namespace) -> Iterator[tuple[Conversation, list[NewMessage]]]:
    """Yield every conversation of the evaluation data."""
    yield from coding_talks(BENCH / "coding-sessions.jsonl.gz", chosen.sessions)
    for place, raw in enumerate(read_rows(BENCH / "beam-100k.jsonl.gz")):
        if place < chosen.beam:
            for name, new in beam_sessions(raw):
                yield Conversation(name, agent="beam", project=f"/code/{raw['id']}"), new
    for raw in read_rows(BENCH / "locomo.jsonl.gz"):
        for name, new in locomo_sessions(raw):
            yield Conversation(name, agent="locomo", project=f"/code/{raw['id']}"), new


def fill(memory: Memory, chosen: argparse.Namespace) -> int:
    """Capture and curate everything; return how many tokens were said."""
    means = CurationContext(
        OfflineSummarizer(memory.sources.embedder.embed),
        memory.sources.embedder,
        memory.sources.nearest,
    )
    told = 0
    counts: Counter[str] = Counter()
    spent_s = 0.0
    for talk, new in talks(chosen):
        capture(memory.database, talk, new)
        told += sum(tokens.count(message_features.full_text(message.parts)) for message in new)
        started = time.thread_time()
        made = extraction.curate_session(memory.database, talk.session, means)
        spent_s += time.thread_time() - started
        counts[f"{talk.agent} sessions"] += 1
        counts[f"{talk.agent} fragments"] += len(made.stored)
        for name in ("merged", "known", "attached", "superseded", "contradicted", "dropped"):
            counts[name] += getattr(made, name)
    print(f"tokens said      {told:,}, curated in {spent_s:.0f} s of this thread")
    for name, count in counts.items():
        print(f"{name:<22} {count}")
    return told


def everything(memory: Memory) -> list[Numbered]:
    """Return all fragments that stand, in the order in which they were learned."""
    with memory.database.read() as db:
        ns = fragments.filter_visible(db, fragments.FragmentFilter())
        return sorted(fragments.by_number(db, sorted(ns)).items())


def of_agent(memory: Memory, found: list[Numbered], agent: str) -> list[Numbered]:
    """Return the fragments that come from one of the data sets."""
    with memory.database.read() as db:
        known = {
            session.id: session.agent for session in sessions.recent_sessions(db, limit=10_000)
        }
    return [(n, one) for n, one in found if known.get(one.session_id or "") == agent]


def drawn(memory: Memory, found: list[Numbered], chosen: argparse.Namespace) -> list[Numbered]:
    """Return the sample: in proportion, or as many of each set, set by set."""
    dice = random.Random(chosen.seed)
    if not chosen.per_set:
        return dice.sample(found, min(chosen.samples, len(found)))
    sets = [of_agent(memory, found, name) for name in SETS]
    return [one for each in sets for one in dice.sample(each, min(chosen.per_set, len(each)))]


def show(memory: Memory, place: int, fragment: Fragment) -> None:
    """Print a fragment with where it came from."""
    with memory.database.read() as db:
        source = items.resolve(db, fragment.source_messages[0])
        said = message_features.spoken_text(messages.get_message(db, source.n).parts)
        total = len(fragment.source_messages)
    head = f"{fragment.kind} {fragment.importance:.2f} {fragment.origin} d{fragment.depth} s{total}"
    print(f"\n{place}. [{head}] {fragment.content}")
    at = said.find(fragment.content[:40])
    start = max(0, at - CONTEXT_CHARS // 2)
    print(f"     < {' '.join(said[start : start + CONTEXT_CHARS].split())}")


def main() -> None:
    """Curate, count, and print the sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--sessions", type=int, default=284)
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--of", default="", help="sample one set only: coding, beam or locomo")
    parser.add_argument("--per-set", type=int, default=0, help="sample so many of each set")
    parser.add_argument("--home", default="", help="keep the memory here, or use what is here")
    chosen = parser.parse_args()
    if not BENCH.exists():
        sys.exit("The evaluation data is not here: nothing to measure.")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(chosen.home or folder)
        is_filled = (home / "memory.db").exists()
        with Memory.open(home) as memory:
            if not is_filled:
                fill(memory, chosen)
            found = everything(memory)
            size = sum(tokens.count(one.content) for _, one in found)
            print(f"fragments        {len(found)}, tokens {size:,}")
            print(f"kinds            {dict(Counter(one.kind for _, one in found).most_common())}")
            print(f"roots            {sum(one.depth == 0 for _, one in found)}")
            if chosen.of:
                found = of_agent(memory, found, chosen.of)
                print(f"of {chosen.of:<13} {len(found)}")
            for place, (_, fragment) in enumerate(drawn(memory, found, chosen), 1):
                show(memory, place, fragment)


if __name__ == "__main__":
    main()

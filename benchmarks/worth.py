"""What curation keeps of sessions of which a reader listed what a colleague would want.

    uv run python benchmarks/worth.py --corpus SESSIONS [--only PROJECT] [--all] [--sample 60]
                                      [--seed 1] [--out FILE]

For each project of `data/worth-keeping.jsonl.gz` it curates the listed sessions (with `--all` every
session of the project) with the chat that the settings choose (`LORE_CHAT_PROVIDER` and so on;
without one, with the shipped models, which know these projects), and prints how much of what the
reader listed is there. An item counts as covered if a fragment from one of its turns has at least
COVERED_WORDS of its content words, or a cosine of at least COVERED_COSINE to it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import train_statements as training
from episodes import messages_of
from lore import settings
from lore.capture.message_capture import Conversation, capture
from lore.memory import Memory
from lore.records import Fragment, NewMessage
from lore.store import fragments, messages, sessions
from lore.text import words

COVERED_WORDS, COVERED_COSINE = 0.4, 0.7
DUPLICATE_COSINE, DUPLICATE_WORDS = 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Kept:
    """A fragment with its session, the places of its turns and its vector."""

    fragment: Fragment
    session: str
    turns: frozenset[int]
    vector: np.ndarray


def curate(
    memory: Memory,
    raws: Sequence[dict[str, Any]],
    project: str,
) -> list[Kept]:
    """Curate sessions of a project into a memory, and return what stands then."""
    places: dict[str, tuple[str, int]] = {}
    for raw in raws:
        listed, title = messages_of(raw)
        spoken = [m for m in listed if any(part.text.strip() for part in m.parts)]
        new = [NewMessage(m.role, m.parts, m.created_at, key=m.id, origin=m.origin) for m in spoken]
        if new:
            talk = Conversation(raw["sid"], agent="coding", project=f"/code/{project}", title=title)
            capture(memory.database, talk, new)
            memory.digest.curate(raw["sid"])
            with memory.database.read() as db:
                n = sessions.get_session_number(db, raw["sid"])
                stored = messages.messages_of_session(db, n, first=0, limit=100_000)
            for one, source in zip(stored, spoken, strict=True):
                places[one.id] = (raw["sid"], source.ordinal)
    return list(_standing(memory, places))


def _standing(memory: Memory, places: dict[str, tuple[str, int]]) -> Iterator[Kept]:
    with memory.database.read() as db:
        ns = fragments.filter_visible(db, fragments.FragmentFilter())
        kept = list(fragments.by_number(db, sorted(ns)).values())
    vectors = memory.sources.embedder.embed([one.content for one in kept])
    for one, vector in zip(kept, vectors, strict=True):
        sources = [places[id_] for id_ in one.source_messages]
        turns = frozenset(place for _, place in sources)
        yield Kept(one, sources[0][0], turns, vector)


def content_words(text: str) -> set[str]:
    """Return the stems of the words that say something."""
    return {words.stem(word) for word in words.split(text) if word not in words.STOP_WORDS}


def is_covered(item: dict[str, Any], session: str, vector: np.ndarray, kept: list[Kept]) -> bool:
    """Return whether a fragment from one of an item's turns says it."""
    wanted = content_words(item["what"])
    for one in kept:
        if one.session != session or not one.turns & set(item["turns"]):
            continue
        share = len(wanted & content_words(one.fragment.content)) / max(1, len(wanted))
        if share >= COVERED_WORDS or float(one.vector @ vector) >= COVERED_COSINE:
            return True
    return False


def count_duplicates(kept: Sequence[Kept]) -> int:
    """Return how many fragments repeat an earlier one: nearly the same vector and words."""
    count = 0
    for place, one in enumerate(kept):
        mine = content_words(one.fragment.content)
        for other in kept[:place]:
            theirs = content_words(other.fragment.content)
            shared = len(mine & theirs) / max(1, min(len(mine), len(theirs)))
            if float(one.vector @ other.vector) >= DUPLICATE_COSINE and shared >= DUPLICATE_WORDS:
                count += 1
                break
    return count


def labels_of(kept: Sequence[Kept], project: str) -> list[float]:
    """Return the readers' worth (0 to 3) of the fragments that hold a labelled sentence."""
    rows = [
        (row["session"], training.plain_text(row["text"]), row)
        for row in training.read_lines(training.DATA / "statements.jsonl.gz")
        if row["project"] == project
    ]
    found = []
    for one in kept:
        grades = [
            (row["first"]["worth"] + row["second"]["worth"]) / 2
            for session, text, row in rows
            if session == one.session and len(text) > 20 and text in one.fragment.content
        ]
        if grades:
            found.append(max(grades))
    return found


def show(kept: Sequence[Kept], names: dict[int, str], count: int, seed: int) -> None:
    """Print a sample of fragments to judge."""
    for place, one in enumerate(random.Random(seed).sample(kept, min(count, len(kept))), 1):
        fragment = one.fragment
        head = f"{names[id(one)]} {fragment.kind} {fragment.importance:.2f} {fragment.origin}"
        print(f"\n{place}. [{head} d{fragment.depth}] {fragment.content}")


def write_fragments(kept: Sequence[Kept], names: dict[int, str], path: Path) -> None:
    """Write fragments with their sessions and turns, for readers to judge."""
    with path.open("w", encoding="utf-8") as stream:
        for one in kept:
            fragment = one.fragment
            row = {
                "project": names[id(one)],
                "session": one.session,
                "turns": sorted(one.turns),
                "kind": fragment.kind,
                "importance": fragment.importance,
                "origin": fragment.origin,
                "text": fragment.content,
            }
            stream.write(json.dumps(row) + "\n")


def parse_arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of fetch_sessions.py")
    parser.add_argument("--out", type=Path, help="write all fragments there, as JSON lines")
    parser.add_argument("--only", action="append", help="one project; repeatable")
    parser.add_argument("--all", action="store_true", help="every session, not the listed ones")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Curate, count, and print a sample."""
    options = parse_arguments()
    listed = list(training.read_lines(training.DATA / "worth-keeping.jsonl.gz"))
    everything: list[Kept] = []
    names: dict[int, str] = {}
    covered = total = 0
    for project in options.only or sorted({row["project"] for row in listed}):
        rows = [row for row in listed if row["project"] == project]
        wanted = {row["session"] for row in rows}
        path = training.session_path(project, options.corpus)
        if not path.exists():
            print(f"{project}: its sessions are not here", file=sys.stderr)
            continue
        raws = [raw for raw in training.read_lines(path) if options.all or raw["sid"] in wanted]
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            config = settings.load(home=home, project_dir=home).settings
            with Memory.open(config=config) as memory:
                kept = curate(memory, raws, project)
                wanted_items = [(row["session"], item) for row in rows for item in row["items"]]
                rows_ = memory.sources.embedder.embed([item["what"] for _, item in wanted_items])
        hits = [
            is_covered(item, session, vector, kept)
            for (session, item), vector in zip(wanted_items, rows_, strict=True)
        ]
        covered, total = covered + sum(hits), total + len(hits)
        report(project, len(raws), kept, hits, labels_of(kept, project))
        everything += kept
        names |= {id(one): project for one in kept}
    if options.out:
        write_fragments(everything, names, options.out)
    print(f"covered {covered} of {total}; fragments {len(everything)}")
    grades = np.array([one.fragment.importance for one in everything])
    bins, _ = np.histogram(grades, bins=np.linspace(0, 1, 11))
    print(f"importance by tenths {bins.tolist()}")
    show(everything, names, options.sample, options.seed)


def report(
    project: str, sessions: int, kept: Sequence[Kept], hits: Sequence[bool], labels: list[float]
) -> None:
    """Print one project's figures."""
    below = sum(one.fragment.depth > 0 for one in kept)
    kinds = dict(Counter(one.fragment.kind for one in kept).most_common())
    worth = f"{sum(grade >= 1 for grade in labels)} of {len(labels)}"
    print(
        f"{project:<11} {sessions:>3} sessions, {len(kept):>4} fragments, covered "
        f"{sum(hits)} of {len(hits)}, labelled worth 1+ {worth}, duplicates "
        f"{count_duplicates(kept)}, below a root {below / max(1, len(kept)):.2f}, {kinds}",
        flush=True,
    )


if __name__ == "__main__":
    main()

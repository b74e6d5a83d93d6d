"""How quickly are transcripts captured, beside a plain loop of json.loads over the same lines?

Reads the transcripts of ../shared/bench (or made ones where there are none), each with sessions
of its own until there is enough of them, on a RAM folder where there is one. The targets are for
CPU seconds of the whole process, which is the work that one core has; beside them stands the
time on the wall, which is what a person waits. One round comes after the other, and the best
counts, because other work on the machine can only make a round slower. The parts of the way are
timed one by one, and so is how long a message takes until it is found, by its words and by its
meaning.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

from lore import clock
from lore.capture.adapter_protocol import LineAdapter
from lore.capture.adapters.adapter_registry import find_adapter
from lore.capture.message_batches import BATCH_MESSAGES
from lore.capture.message_capture import prepare_all
from lore.capture.transcript_capture import ReadOptions, TranscriptFile, capture_files
from lore.capture.transcript_files import open_file, parse, read_lines
from lore.memory import Memory
from lore.projects import ProjectFinder
from lore.records import NewMessage
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.settings import Settings
from lore.store import keywords, messages, sessions
from lore.store.database import Connection, Database, open_database
from lore.store.keywords import NewMessageText

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPTS = ROOT.parent / "shared" / "bench" / "transcripts"
TARGET_RATIO = 4.0
TARGET_LINES_PER_S = 20_000
UUID = re.compile(rb'"uuid":\s*"')
SESSION = re.compile(rb'"sessionId":\s*"([^"]+)"')
WORDS = "the heron lands on a pier and reads src/db/todos.ts while getUserName fails".split()
UNREDACTED = Redactor(b"0" * 32, active=False)


def samples() -> dict[str, bytes]:
    """Return transcripts of Claude Code by name."""
    found = {
        path.name.removesuffix(".jsonl.gz"): gzip.decompress(path.read_bytes())
        for path in sorted(TRANSCRIPTS.glob("*.jsonl.gz"))
    }
    return {name: data for name, data in found.items() if SESSION.search(data)} or made()


def made() -> dict[str, bytes]:
    """Return a transcript that is like a real one in lengths and kinds of lines."""
    draw = random.Random(1)
    lines = []
    for i in range(2_000):
        kind = draw.choices(("progress", "user", "assistant"), (6, 2, 3))[0]
        text = " ".join(draw.choices(WORDS, k=draw.choice((20, 60, 400))))
        lines.append(
            json.dumps(
                {
                    "type": kind, "uuid": f"u{i}", "sessionId": "made", "cwd": "/code/app",
                    "timestamp": f"2026-05-13T12:{i // 60 % 60:02}:{i % 60:02}Z",
                    "message": {"role": kind, "content": text},
                }
            )
        )  # fmt: skip
    return {"made": "\n".join(lines).encode() + b"\n"}


def spread(folder: Path, megabytes: float) -> list[Path]:
    """Write the samples again and again, with other sessions and ids, until there is enough."""
    files: list[Path] = []
    size, turn, found = 0, 0, samples()
    while size < megabytes * 1e6:
        for name, data in found.items():
            for id_ in set(SESSION.findall(data)):
                data = data.replace(id_, id_ + b"-%d" % turn)
            data = UUID.sub(b'"uuid":"%d-' % turn, data)
            files.append(folder / f"{name}-{turn}.jsonl")
            files[-1].write_bytes(data)
            size += len(data)
        turn += 1
    return files


def cpu_s(work: Callable[[], T]) -> tuple[float, T]:
    """Run something and return the CPU seconds it took, with its result."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


class Spent(NamedTuple):
    """What some work took: of the processor, and on the wall."""

    cpu_s: float
    wall_s: float


def spent(work: Callable[[], T]) -> tuple[Spent, T]:
    """Run something and return what it took, with its result."""
    begun = time.perf_counter()
    cpu, result = cpu_s(work)
    return Spent(cpu, time.perf_counter() - begun), result


def best(rounds: Sequence[Spent]) -> Spent:
    """Return the least of the processor and the least on the wall."""
    return Spent(min(each.cpu_s for each in rounds), min(each.wall_s for each in rounds))


def plain_loop(files: list[Path]) -> int:
    """Parse every line with the standard library; count them."""
    count = 0
    for path in files:
        with path.open("rb") as stream:
            for line in stream:
                json.loads(line)
                count += 1
    return count


def open_fresh(folder: Path) -> Database:
    """Open a database of its own."""
    home = Path(tempfile.mkdtemp(dir=folder))
    return open_database(home / "memory.db", busy_timeout_s=30, backups=None)


def whole_path(folder: Path, files: list[Path], redactor: Redactor) -> int:
    """Capture every file into a new database; count the messages."""
    database = open_fresh(folder)
    reading = ReadOptions(database, find_adapter, ProjectFinder(), redactor)
    found = [TranscriptFile(path, path.stat().st_size, named=True) for path in files]
    captured = capture_files(reading, found)
    database.close()
    return captured.added


def told(files: list[Path], *, tells: bool) -> Iterator[list[NewMessage]]:
    """Yield what each file tells, or only parse it."""
    for path in files:
        said: list[NewMessage] = []
        with open_file(path) as opened:
            adapter = find_adapter(path, opened.head)
            assert isinstance(adapter, LineAdapter)
            context = adapter.initial_context(path)
            for line in read_lines(opened.stream, 0):
                value = parse(line.raw)
                if tells:
                    found = adapter.parse_line(value, context)
                    context = found.context
                    said += found.messages
        yield said


def together(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Return the places of sizes in runs that are not much more than `most` in sum, if not 0."""
    runs: list[list[int]] = [[]]
    for place, size in enumerate(sizes):
        if runs[-1] and sum(sizes[each] for each in runs[-1]) + size > most:
            runs.append([])
        if size:
            runs[-1].append(place)
    return runs


def stages(folder: Path, files: list[Path]) -> dict[str, float]:
    """Return the CPU seconds of each part of the way."""
    parsing, _ = cpu_s(lambda: list(told(files, tells=False)))
    telling, said = cpu_s(lambda: list(told(files, tells=True)))
    plain, _ = cpu_s(lambda: [prepare_all(each, redactor=UNREDACTED) for each in said])
    both, prepared = cpu_s(
        lambda: [prepare_all(each, redactor=EPHEMERAL_REDACTOR) for each in said]
    )
    database = open_fresh(folder)

    def store(db: Connection, together: Sequence[int]) -> None:
        unindexed: list[NewMessageText] = []
        for number in together:
            n = sessions.ensure_session(
                db, f"s{number}", agent="x", project_n=None, started_at=clock.now()
            )
            messages.add_messages(
                db, n, prepared[number], now=clock.now(), channel="file", unindexed=unindexed
            )
        keywords.add_messages(db, unindexed)

    parcels = together([len(each) for each in prepared], BATCH_MESSAGES)
    storing, _ = cpu_s(
        lambda: [
            database.write(lambda db, numbers=numbers: store(db, numbers))  # type: ignore[misc]
            for numbers in parcels
        ]
    )
    database.close()
    return {
        "read and parse": parsing,
        "tell (adapter)": telling - parsing,
        "redact": both - plain,
        "derive": plain,
        "store and index": storing,
    }


def time_to_findable(folder: Path) -> dict[str, float]:
    """Return the milliseconds from an append to a file until it is found."""
    home = Path(tempfile.mkdtemp(dir=folder))
    talk = home / "talk.jsonl"
    spans: dict[str, list[float]] = {"captured": [], "by words": [], "by meaning": []}
    with Memory.open(config=replace(Settings(), home=home / "lore")) as memory:
        memory.capture("warm", [NewMessage("user", (), clock.now(), "k")])
        memory.recall("anything")
        for i in range(20):
            told_at = (clock.now() - timedelta(minutes=20 - i)).isoformat()
            line = {"role": "user", "content": f"The code word of day {i} is heron{i}.",
                    "id": str(i), "timestamp": told_at}  # fmt: skip
            with talk.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            begun = time.perf_counter()
            memory.capture_files([talk])
            spans["captured"].append(time.perf_counter() - begun)
            with memory.database.read() as db:
                match = f"heron{i}"
                assert db.find("SELECT 1 FROM message_words WHERE message_words MATCH :m", m=match)
            spans["by words"].append(time.perf_counter() - begun)
            memory.maintenance.embed_waiting()
            spans["by meaning"].append(time.perf_counter() - begun)
    return {name: sorted(each)[len(each) // 2] * 1e3 for name, each in spans.items()}


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--megabytes", type=float, default=100)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    ram = Path("/dev/shm")  # noqa: S108 - a RAM folder, to leave the disk out
    folder = Path(tempfile.mkdtemp(dir=ram if ram.is_dir() else None))
    try:
        measure(folder, given.megabytes, given.rounds)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, megabytes: float, rounds: int) -> None:
    """Run the rounds and print what came of them."""
    files = spread(folder, megabytes)
    size = sum(path.stat().st_size for path in files)
    loops, wholes, lines, added = [], [], 0, 0
    for _ in range(rounds):
        took, lines = spent(lambda: plain_loop(files))
        loops.append(took)
        took, added = spent(lambda: whole_path(folder, files, EPHEMERAL_REDACTOR))
        wholes.append(took)
    loop, whole = best(loops), best(wholes)
    print(f"{size / 1e6:.0f} MB, {len(files)} files, {lines:,} lines, {added:,} messages")
    print("                        CPU                       wall")
    for name, took in (("json.loads loop", loop), ("capture", whole)):
        print(f"{name:<17}", *(f"{s:6.2f} s  {lines / s:>9,.0f} lines/s" for s in took))
    print(f"ratio             {whole.cpu_s / loop.cpu_s:6.1f}    (of CPU seconds; target"
          f" {TARGET_RATIO:g}, and {TARGET_LINES_PER_S:,} lines/s)"
          f"  {whole.wall_s / loop.wall_s:6.1f}    (of wall seconds)")  # fmt: skip
    for name, part in stages(folder, files).items():
        print(f"   {name:<16} {part:6.2f} s  {part / loop.cpu_s:5.1f} × the loop")
    for name, ms in time_to_findable(folder).items():
        print(f"   {name:<16} {ms:6.1f} ms after the line was written, median of 20")


if __name__ == "__main__":
    main()

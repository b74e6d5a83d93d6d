"""Processes at once: a small process that forks workers, kills them and looks at what is left.

It runs apart from pytest (`python -m tests.trust.crowd`), so that no thread is there to fork.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lore.memory import Memory
from lore.store import maintenance
from tests.store.samples import new_message, open_memory

BATCH = 3


def sentence(worker: int, seq: int) -> str:
    return f"worker{worker} wrote note{seq} about topic{seq % 17} and topic{worker * seq % 23}"


def write_once(memory: Memory, worker: int, seq: int) -> None:
    """Make one write that can be repeated: a fragment, or messages of the worker's session."""
    if seq % 2:
        memory.store(sentence(worker, seq), key=f"{worker}-{seq}")
    else:
        batch = [
            new_message(sentence(worker, seq) + f" part{i}", seq, key=f"{seq}-{i}")
            for i in range(BATCH)
        ]
        memory.capture(f"session{worker}", batch, title=f"Session of worker{worker}")


def work_until_killed(home: Path, worker: int, first: int, acks: int) -> None:
    with open_memory(home) as memory:
        for seq in range(first, first + 1_000_000):
            write_once(memory, worker, seq)
            os.write(acks, f"{worker} {seq}\n".encode())


def look_until_killed(home: Path, acks: int) -> None:
    with open_memory(home) as memory:
        while True:
            for line in inconsistencies(memory):
                os.write(acks, f"? {line}\n".encode())


def inconsistencies(memory: Memory) -> list[str]:
    """Compare numbers that must agree at every moment."""
    with memory.database.read() as db:
        said = db.value("SELECT count(*) FROM messages")
        indexed = db.value("SELECT count(*) FROM message_words_docsize")
        kept = db.value("SELECT count(*) FROM fragments")
        found = db.value("SELECT count(*) FROM fragment_words_docsize")
        gaps = db.value(
            "SELECT count(*) FROM (SELECT 1 FROM messages GROUP BY session_n"
            " HAVING count(*) <> max(ordinal) + 1)"
        )
        parts = db.value(f"SELECT count(*) FROM messages WHERE ordinal % {BATCH} = 0") * BATCH
    pairs = {"messages": (said, indexed), "fragments": (kept, found), "batches": (said, parts)}
    return [f"{what}: {a} and {b}" for what, (a, b) in pairs.items() if a != b] + (
        [f"{gaps} sessions with gaps"] if gaps else []
    )


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a process of its own; an error there is written down and told."""
    pid = os.fork()
    if pid:
        return pid
    code = 0
    try:
        work()
    except BaseException:  # noqa: BLE001 - the test reads stderr and the exit code
        traceback.print_exc()
        code = 3
    finally:
        os._exit(code)


def stored(memory: Memory) -> dict[str, int]:
    """Return how often each text is stored."""
    with memory.database.read() as db:
        texts = [row[0] for row in db.rows("SELECT content FROM fragments")]
        said = db.rows("SELECT parts FROM messages")
    texts += [row[0] for row in said]
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return counts


def texts_of(worker: int, seq: int) -> list[str]:
    if seq % 2:
        return [sentence(worker, seq)]
    return [sentence(worker, seq) + f" part{i}" for i in range(BATCH)]


PATIENCE_S = 20
"""How long to wait for a write on a busy machine."""


class Campaign:
    """Rounds of writers and a reader that are killed at random instants."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.rng = random.Random(seed)
        self.next_seq = dict.fromkeys(range(1, 5), 0)
        self.report: dict[str, float] = {"kills": 0, "acknowledged": 0, "slowest_open_s": 0.0}
        self.expected: set[str] = set()
        self.problems: list[str] = []

    def run(self, kills: int) -> None:
        rounds = 0
        while self.report["kills"] < kills and not self.problems:
            acknowledged = self.kill_round()
            self.look_after(acknowledged, thorough=rounds % 25 == 0)
            rounds += 1
        self.look_after({}, thorough=True)

    def kill_round(self) -> dict[int, int]:
        """Start workers, kill them, and return the last write that each acknowledged."""
        read_end, acks = os.pipe()
        pids = [
            fork(partial(work_until_killed, self.home, worker, seq, acks))
            for worker, seq in self.next_seq.items()
        ]
        pids.append(fork(lambda: look_until_killed(self.home, acks)))
        os.close(acks)
        if self.rng.random() < 0.5:  # the others may die before they have written anything
            select.select([read_end], [], [], PATIENCE_S)
        time.sleep(self.rng.uniform(0.01, 0.11))
        self.rng.shuffle(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            time.sleep(self.rng.choice((0, 0, self.rng.uniform(0, 0.01))))
        for pid in pids:
            status = os.waitpid(pid, 0)[1]
            if not os.WIFSIGNALED(status):
                self.problems.append(f"a worker ended by itself with {status}")
            self.report["kills"] += 1
        with os.fdopen(read_end, "rb") as stream:
            lines = stream.read().decode().splitlines()
        self.problems += [line for line in lines if line.startswith("?")]
        last: dict[int, int] = {}
        for line in lines:
            if not line.startswith("?"):
                worker, seq = map(int, line.split())
                last[worker] = seq
                self.report["acknowledged"] += 1
        return last

    def look_after(self, acknowledged: dict[int, int], *, thorough: bool) -> None:
        started = time.perf_counter()
        with open_memory(self.home) as memory:
            memory.search("topic3", log=False)
            took = time.perf_counter() - started
            self.report["slowest_open_s"] = max(self.report["slowest_open_s"], took)
            self.problems += inconsistencies(memory)
            for worker, seq in acknowledged.items():
                # Repeating the write that nobody knows of must store it exactly once.
                write_once(memory, worker, seq + 1)
                for each in range(self.next_seq[worker], seq + 2):
                    self.expected.update(texts_of(worker, each))
                self.next_seq[worker] = seq + 2
            counts = stored(memory)
            self.problems += [
                f"stored {counts.get(text, 0)} times: {text}"
                for text in self.expected
                if counts.get(text, 0) != 1
            ]
            if thorough:
                self.problems += damage(memory)


def damage(memory: Memory) -> list[str]:
    with memory.database.read() as db:
        found = maintenance.check_integrity(db)
    return found + memory.database.write(maintenance.compare_keyword_index)


def kill(home: Path, kills: int, seed: int) -> dict[str, object]:
    campaign = Campaign(home, seed)
    campaign.run(kills)
    return {**campaign.report, "problems": campaign.problems[:10]}


def contend(home: Path, processes: int, each: int) -> dict[str, object]:
    """Let processes open an empty home at once, write and read; report what is wrong."""
    gate, opened = os.pipe()

    def work(worker: int) -> None:
        os.read(gate, 1)
        with open_memory(home) as memory:
            for seq in range(each):
                write_once(memory, worker, seq)
                found = inconsistencies(memory) if seq % 5 == 0 else []
                assert not found, found

    pids = [fork(partial(work, worker)) for worker in range(processes)]
    os.write(opened, b"x" * processes)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    with open_memory(home) as memory:
        counts = stored(memory)
        wanted = [t for w in range(processes) for s in range(each) for t in texts_of(w, s)]
        problems = inconsistencies(memory) + damage(memory)
    return {
        "failed": sum(code != 0 for code in codes),
        "lost": sum(counts.get(text, 0) == 0 for text in wanted),
        "doubled": sum(count > 1 for count in counts.values()),
        "problems": problems,
    }


def main(arguments: Sequence[str]) -> None:
    command, home, *numbers = arguments
    commands: dict[str, Callable[..., dict[str, object]]] = {"kill": kill, "contend": contend}
    report = commands[command](Path(home), *map(int, numbers))
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])

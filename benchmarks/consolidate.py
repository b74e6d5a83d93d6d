"""How long does a cycle take at 1 k, 10 k and 100 k fragments, and how does it grow?

Makes memories of trees (a root with children) around themes, the vectors drawn directly: a
centre for each theme, noise around it, some roots that say nearly the same as another. Runs a
first cycle, in which everything is new, a second one two hours later with a hundred new
fragments, and a third a day later, which removes what the first one hid, all offline. Also
measures which share of the truly near pairs the trees find. Each size runs in a process of its
own on at most two threads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.digest.consolidation import pairs
from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.records import CycleReport
from lore.store import fragments, graph, project_rows, vectors
from lore.store.database import Connection, Database, open_database

Matrix = NDArray[np.float32]

SIZES = (1_000, 10_000, 100_000)
TARGET_S = 60.0
TARGET_EXPONENT = 1.2
TARGET_RECALL = 0.98

DIMENSION = 384
CHILDREN = 4
PER_THEME = 40
"""Roots of one theme, as a project has them."""

ALIKE = 0.05
"""Share of roots that say nearly what another says."""

LIMITS = 0.1
"""Share of children that give a number."""

NAMES = "orders billing search login mail report export import cache queue audit quota".split()
WORDS = (
    "retries failed writes reads batches from shared storage logs every refused call keeps open"
    " sockets drains slowly warms caches before noon signs tokens rotates keys trims history sends"
    " digests skips empty rows follows redirects checks hashes locks files splits large jobs"
).split()
AGES_DAYS = (1, 10, 40, 100, 200)
NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
BATCH = 2_000


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.moment = NOW

    def __call__(self) -> datetime:
        """Return the time at which it stands."""
        return self.moment


def unit(matrix: NDArray[np.float64]) -> Matrix:
    """Return rows of length 1."""
    rows: Matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return rows


def root_vectors(count: int, draw: np.random.Generator) -> Matrix:
    """Draw roots around themes; some of them close to another one."""
    centres = draw.standard_normal((max(2, count // PER_THEME), DIMENSION))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    themes = np.arange(count) % len(centres)
    noise = draw.standard_normal((count, DIMENSION)) / math.sqrt(DIMENSION)
    rows = unit(centres[themes] + noise).astype(np.float64)
    alike = int(count * ALIKE)
    step = draw.uniform(0.3, 0.75, size=(alike, 1)) / math.sqrt(DIMENSION)
    near_by = rows[:alike] + step * draw.standard_normal((alike, DIMENSION))
    rows[count - alike :] = near_by
    return unit(rows)


def fill(database: Database, count: int, first: int, draw: np.random.Generator) -> None:
    """Store trees of fragments with vectors and edges."""
    now = database.now()
    roots = max(2, count // (CHILDREN + 1))
    above = root_vectors(roots, draw)
    embedder_n = database.write(lambda db: vectors.ensure_embedder(db, "drawn", DIMENSION))
    database.write(lambda db: vectors.set_active_embedder(db, "drawn", DIMENSION))

    def store(db: Connection, start: int, end: int) -> None:
        ns: list[int] = []
        rows: list[Matrix] = []
        for i in range(start, end):
            # The last roots say what the first ones say.
            alike = i - (roots - int(roots * ALIKE))
            root = add_tree(db, first + (alike if alike >= 0 else i), ns, now, draw)
            noise = draw.standard_normal((CHILDREN, DIMENSION)) * 0.4 / math.sqrt(DIMENSION)
            rows += [above[i : i + 1], unit(above[i].astype(np.float64) + noise)]
            if len(ns) > CHILDREN + 1:
                earlier = ns[draw.integers(0, len(ns) - CHILDREN - 1)]
                weight = float(draw.uniform(0.2, 0.75))
                graph.put_edge(db, root, earlier, "associative", now=now, weight=weight)
        vectors.put(db, embedder_n, ns, np.concatenate(rows))

    for start in range(0, roots, BATCH):
        end = min(roots, start + BATCH)
        database.write(lambda db, start=start, end=end: store(db, start, end))  # type: ignore[misc]


def said(theme: int, child: int, draw: np.random.Generator) -> str:
    """Return what a fragment says: one child in ten gives a limit, which another may deny."""
    service = f"{NAMES[theme % len(NAMES)]}{theme}"
    if not child:
        return f"The {service} service takes care of {WORDS[theme % len(WORDS)]}"
    if draw.random() < LIMITS:
        return f"The {service} service takes {draw.integers(1, 9)}0 requests a second"
    return f"The {service} service {' '.join(draw.choice(WORDS, size=6))}"


def add_tree(
    db: Connection,
    theme: int,
    ns: list[int],
    now: datetime,
    draw: np.random.Generator,
) -> int:
    """Store a root with its children and return its number."""
    # All in one project: what belongs to different ones is not even compared.
    project_n = project_rows.ensure_project(db, "/code/app", now=now)
    at = now - timedelta(days=float(draw.choice(AGES_DAYS)))
    root = 0
    for child in range(CHILDREN + 1):
        text = said(theme, child, draw)
        n = fragments.add(
            db,
            fragments.NewFragment(
                id=clock.new_id(at),
                content=text,
                summary=text,
                kind="fact",
                created_at=at,
                depth=min(child, 1),
                importance=float(draw.choice((0.2, 0.5, 0.9))),
                origin="assistant",
                project_n=project_n,
                source_messages=("m",),
            ),
            now=now,
        )
        if child:
            graph.put_edge(db, root, n, "hierarchical", now=at)
        else:
            root = n
        ns.append(n)
    return root


def measure(count: int) -> dict[str, Any]:
    """Fill a memory, run two cycles in it and return what they took."""
    draw = np.random.default_rng(count)
    stands = Clock()
    with tempfile.TemporaryDirectory(dir=fast_folder()) as home:
        path = Path(home) / "memory.db"
        database = open_database(path, busy_timeout_s=60, backups=None, now=stands)
        started = time.monotonic()
        fill(database, count, 0, draw)
        filled = time.monotonic() - started
        means = CycleContext(OfflineSummarizer())
        first = timed(database, means)
        stands.moment += timedelta(hours=2)
        fill(database, 100, 10_000_000, draw)
        second = timed(database, means)
        stands.moment += timedelta(hours=25)
        third = timed(database, means)
        database.close()
    return {
        "fragments": count,
        "fill_s": filled,
        "first": first,
        "second": second,
        "third": third,
    }


def timed(database: Database, means: CycleContext) -> dict[str, Any]:
    """Run a cycle and return its times, by the clock and by the processor."""
    wall, cpu = time.monotonic(), time.process_time()
    report = run_cycle(database, means)
    return {
        "wall_s": time.monotonic() - wall,
        "cpu_s": time.process_time() - cpu,
        "phases": told(report),
    }


def told(report: CycleReport) -> dict[str, Any]:
    """Return the phases of a report by name."""
    return {
        one.phase: {"s": one.seconds, "state": one.state, "why": one.reason, **one.counts}
        for one in report.phases
    }


def recall(count: int, above: float) -> tuple[float, int]:
    """Return which share of truly near pairs the trees find, and how many there were.

    The truth is a sample of rows compared with all others.
    """
    draw = np.random.default_rng(5)
    matrix = root_vectors(count, draw)
    found = pairs.similar_pairs(matrix, np.ones(count, bool), above=above)
    known = set(zip(found.a.tolist(), found.b.tolist(), strict=True))
    total = hit = 0
    for row in draw.choice(count, size=2_000, replace=False):
        cosines = matrix @ matrix[row]
        for other in np.flatnonzero(cosines > above):
            if other != row:
                total += 1
                hit += (min(row, other), max(row, other)) in known
    return (hit / total if total else 1.0), total


def fast_folder() -> str | None:
    """Return a folder in memory where there is one: the disk is not what is measured."""
    ram = Path("/dev/shm")  # noqa: S108 - a RAM folder, to leave the disk out
    return str(ram) if os.access(ram, os.W_OK) else None


def in_own_process(*arguments: str) -> Any:
    """Run this script for one question and return its answer."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
    )
    return json.loads(done.stdout)


def exponent(small: float, large: float, factor: float) -> float:
    """Return how a time grows: 1 is as fast as what is measured."""
    return math.log(large / small) / math.log(factor)


def show(results: list[dict[str, Any]]) -> None:
    """Print the times of all sizes, and how they grow from the second to the last."""
    for which in ("first", "second", "third"):
        print(f"\n{which} cycle, seconds by phase (CPU in total)")
        names = list(results[0][which]["phases"])
        print("phase".ljust(18), *(f"{r['fragments']:>10,}" for r in results))
        for name in names:
            print(name.ljust(18), *(f"{r[which]['phases'][name]['s']:>10.2f}" for r in results))
        print("wall".ljust(18), *(f"{r[which]['wall_s']:>10.2f}" for r in results))
        print("cpu".ljust(18), *(f"{r[which]['cpu_s']:>10.2f}" for r in results))
        for one, other in itertools.pairwise(results):
            factor = other["fragments"] / one["fragments"]
            grown = exponent(one[which]["cpu_s"], other[which]["cpu_s"], factor)
            print(f"exponent {one['fragments']:,} → {other['fragments']:,}: {grown:.2f}")
        show_units(which, results)
    print("\ncounts of the largest, first cycle")
    for name, phase in results[-1]["first"]["phases"].items():
        counts = {key: value for key, value in phase.items() if key != "s" and value}
        print(name.ljust(18), counts)


UNITS = {
    "resummarize": "reworded",
    "reflect": "insights",
    "contradict": "judged",
    "prune_fragments": "removed",
}
"""What phases do that is bounded in a cycle."""

LEFT = ("waiting", "children waiting")
"""How phases count what their caps leave for the next cycle."""


def left(phase: dict[str, Any]) -> int:
    """Return how much a phase has left for the next cycle."""
    return sum(phase.get(name, 0) for name in LEFT)


def left_s(phases: dict[str, Any]) -> float:
    """Return how long what is left would take, each unit as long as those that were done."""
    units = ((phases[name], unit) for name, unit in UNITS.items() if phases[name].get(unit))
    return sum(left(phase) * float(phase["s"]) / int(phase[unit]) for phase, unit in units)


def show_units(which: str, results: list[dict[str, Any]]) -> None:
    """Print what each unit of bounded work took, and how much is left for the next cycle."""
    for name, unit in UNITS.items():
        told = [one[which]["phases"][name] for one in results]
        if not any(phase.get(unit) or left(phase) for phase in told):
            continue
        each = [1e3 * p["s"] / p[unit] if p.get(unit) else 0.0 for p in told]
        print(f"{name}, ms a unit".ljust(28), *(f"{ms:>10.2f}" for ms in each))
        print(f"   {unit}".ljust(28), *(f"{phase.get(unit, 0):>10,}" for phase in told))
        print("   left for the next cycle".ljust(28), *(f"{left(p):>10,}" for p in told))


def main() -> None:
    """Measure all sizes and print them beside their targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help="measure one size and print JSON")
    parser.add_argument("--recall", type=int, help="measure recall at so many roots")
    parser.add_argument("--most", type=int, default=SIZES[-1])
    chosen = parser.parse_args()
    if chosen.size:
        print(json.dumps(measure(chosen.size)))
        return
    if chosen.recall:
        print(json.dumps([recall(chosen.recall, above) for above in (0.8, 0.85)]))
        return
    results = [in_own_process("--size", str(size)) for size in SIZES if size <= chosen.most]
    show(results)
    for count in (20_000, 100_000):
        at = in_own_process("--recall", str(count))
        lines = ", ".join(
            f"{share:.4f} above {above} ({pairs} pairs)"
            for above, (share, pairs) in zip((0.8, 0.85), at, strict=True)
        )
        print(f"recall of near pairs among {count:,} roots: {lines}; target {TARGET_RECALL}")
    largest = results[-1]["first"]
    waiting = sum(map(left, largest["phases"].values()))
    print(f"{results[-1]['fragments']:,}: {largest['wall_s']:.1f} s; target {TARGET_S:.0f} s")
    print(f"   and {waiting:,} left by the caps, some {left_s(largest['phases']):.0f} s more")


if __name__ == "__main__":
    main()

"""How quick is a memory of ten thousand, a hundred thousand and a million items?

Every figure is CPU time of one core, taken in fresh processes, beside two baselines over the
same items in the same run: numpy's brute force over the vectors and a plain FTS5 table over the
texts, which is asked for the same words. The embedder is a stand-in (see `corpus`); its own time is
taken out of every figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from latency_figures import (
    measure,
    measure_baselines,
    measure_capture,
    measure_first_answer,
    measure_import,
    measure_keyword_start,
    measure_resident,
    measure_size,
)
from latency_memory import Figures, Place, build

RESULTS = Path(__file__).parent / "results" / "latency.json"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
FRESH_STARTS = 5

PHASES: dict[str, tuple[int, Callable[[Place], Figures]]] = {
    "measure": (1, measure),
    "keyword start": (FRESH_STARTS, measure_keyword_start),
    "first answer": (FRESH_STARTS, measure_first_answer),
    "import": (FRESH_STARTS, measure_import),
    "resident": (1, measure_resident),
    "capture": (1, measure_capture),
    "size": (1, measure_size),
    "baselines": (1, measure_baselines),
}
"""What is measured, and in how many fresh processes; the best of these counts."""


def compiled_once(root: Path) -> dict[str, str]:
    """Return settings that keep bytecode, as an installed package has it: starts are timed."""
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(root / "bytecode")}


def run_apart(name: str, place: Place) -> Figures:
    """Run one phase in a fresh process."""
    command = [sys.executable, __file__, "--phase", name, "--keep", str(place.root)]
    done = subprocess.run(
        [
            *(*command, "--sizes", str(place.size), "--queries", str(place.queries)),
            *(("--texts", str(place.texts)) if place.texts else ()),
        ],
        env={**os.environ, **ONE_THREAD, **compiled_once(place.root)},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def run(place: Place) -> Figures:
    """Measure a memory of one size, built first if it is not there."""
    if not place.built.exists():
        run_apart("build", place)
    found: Figures = {}
    for name, (times, _) in PHASES.items():
        rounds = [run_apart(name, place) for _ in range(times)]
        found |= {key: min(figures[key] for figures in rounds) for key in rounds[0]}
    found["vector_ratio"] = found["numpy_p50_ms"] / found["vector_arm_p50_ms"]
    found["keyword_ratio"] = found["fts5_p50_ms"] / found["keyword_arm_p50_ms"]
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure, its unit and what it should be at each size."""

    label: str
    key: str
    unit: str = "ms"
    targets: tuple[float, float, float] | None = None
    at_least: bool = False


SIZES = (10_000, 100_000, 1_000_000)

TABLE = (
    Line("recall p50", "recall_p50_ms", targets=(3, 12, 60)),
    Line("recall p99", "recall_p99_ms", targets=(10, 40, 150)),
    Line("recall without its log entry p50", "recall_unlogged_p50_ms"),
    Line("search p50", "search_p50_ms"),
    Line("search p99", "search_p99_ms"),
    Line("deep search p50", "deep_p50_ms"),
    Line("find_sessions p50", "sessions_p50_ms"),
    Line("vector arm, top 50, p50", "vector_arm_p50_ms", targets=(3, 3, 25)),
    Line("  numpy float32 brute force", "numpy_p50_ms"),
    Line("  times quicker than numpy", "vector_ratio", "x"),
    Line("  recall at 50", "vector_recall_at_50", "", (0.98, 0.98, 0.98), at_least=True),
    Line("keyword arm (4 columns, 3 tables) p50", "keyword_arm_p50_ms", targets=(40, 40, 40)),
    Line("keyword arm p99", "keyword_arm_p99_ms"),
    Line("  plain FTS5, top 50, p50", "fts5_p50_ms"),
    Line("  plain FTS5, top 50, p99", "fts5_p99_ms"),
    Line("  plain FTS5 with all words, p50", "fts5_all_words_p50_ms"),
    Line("  times quicker than plain FTS5", "keyword_ratio", "x"),
    Line("  of it word counts", "sql_vocabulary_p50_ms"),
    Line("statements that read rows p50", "sql_rows_p50_ms"),
    Line("statements that read vectors p50", "sql_vectors_p50_ms"),
    Line("open + first keyword recall, CPU", "keywords_start_cpu_ms", targets=(50, 50, 50)),
    Line("open + first keyword recall, wall", "keywords_start_wall_ms"),
    Line("open + first answer, CPU", "answer_start_cpu_ms", targets=(100, 100, 100)),
    Line("open + first answer, wall", "answer_start_wall_ms"),
    Line("import of lore.memory, CPU", "import_cpu_ms"),
    Line("resident after 50 recalls", "resident_mb", "MB", (1000, 1000, 1000)),
    Line("  of it private", "resident_private_mb", "MB"),
    Line("capture, batches of 100", "capture_per_cpu_s", "/s", (5e3, 5e3, 5e3), at_least=True),
    Line("capture while building, sessions of 50", "build_messages_per_cpu_s", "/s"),
    Line("store_all", "store_fragments_per_cpu_s", "/s"),
    Line("vectors kept, without embedding", "keep_vectors_per_cpu_s", "/s"),
    Line("raw text", "raw_mb", "MB"),
    Line("database", "database_mb", "MB"),
    Line("  of it vectors", "vectors_mb", "MB"),
    Line("  the rest, times raw text", "text_ratio", "x", (3, 3, 3)),
    Line("vector index beside it", "index_mb", "MB"),
)


def print_table(size: int, found: Figures) -> None:
    """Print the figures of one size with their targets."""
    print(f"\n{size:,} items; CPU time on one core")
    for line in TABLE:
        value = found[line.key]
        text = f"{line.label:<40}{value:>11,.{2 if value < 100 else 0}f} {line.unit:<3}"
        if line.targets and size in SIZES:
            target = line.targets[SIZES.index(size)]
            met = value >= target if line.at_least else value <= target
            sign = "≥" if line.at_least else "≤"
            text += f"  {sign} {target:<6g} {'met' if met else 'MISSED'}"
        print(text)


def main() -> None:
    """Measure every size and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    parser.add_argument("--queries", type=int, default=200, help="questions per figure")
    parser.add_argument("--keep", type=Path, help="keep and re-use built memories here")
    parser.add_argument(
        "--texts", type=Path, help="fill the memories with the texts of this folder"
    )
    parser.add_argument("--phase", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    if asked.phase:
        phases = {name: phase for name, (_, phase) in PHASES.items()} | {"build": build}
        print(
            json.dumps(phases[asked.phase](Place(asked.keep, sizes[0], asked.queries, asked.texts)))
        )
        return
    results = json.loads(asked.json.read_text()) if asked.json.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        root = asked.keep or Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        for size in sizes:
            results[str(size)] = run(Place(root.resolve(), size, asked.queries, asked.texts))
            print_table(size, results[str(size)])
            asked.json.parent.mkdir(exist_ok=True)
            asked.json.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

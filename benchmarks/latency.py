"""How quick is a memory of ten thousand, a hundred thousand and a million items?

Every figure is CPU time of one core, taken in fresh processes, beside two baselines over the
same items in the same run: numpy's brute force over the vectors and a plain FTS5 table over the
texts. The embedder is a stand-in (see `corpus`); its own time is taken out of every figure.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from corpus import NOW, TALK_MESSAGES, Corpus, Talk, WordVectors, ask
from lore.embed import Embedder
from lore.embed.none import NoEmbedder
from lore.memory import Memory
from lore.records import FRAGMENT_KINDS, Draft, NewMessage, Part, Role
from lore.settings import Settings
from lore.store import vectors
from lore.store.db import Database
from lore.text import words

RESULTS = Path(__file__).parent / "results" / "latency.json"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
FRAGMENT_SHARE = 0.05
WARM_UP = 20
DEEP_QUERIES, BASELINE_QUERIES, RESIDENT_RECALLS = 50, 100, 50
FRESH_STARTS = 5
CAPTURED, CAPTURE_BATCH = 5_000, 100
EMBED_BATCH, EMBED_LAST = 4_096, 2_000
TREE_EVERY, LINK_EVERY = 3, 20
TOP = 50

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the memory of one size lies, and how much is asked of it."""

    root: Path
    size: int
    queries: int

    @property
    def home(self) -> Path:
        """Return the home folder of the memory."""
        return self.root / f"memory-{self.size}"

    @property
    def plain(self) -> Path:
        """Return the database of the keyword baseline."""
        return self.home / "plain.db"

    @property
    def questions(self) -> Path:
        """Return the file of the questions."""
        return self.home / "questions.json"

    @property
    def built(self) -> Path:
        """Return the file that says that the memory is whole."""
        return self.home / "built.json"

    def embedder(self) -> WordVectors:
        """Return the stand-in embedder, the same for all sizes."""
        return WordVectors(self.root / "word-vectors.npy")

    def load_questions(self, count: int) -> list[str]:
        """Return the first of the questions."""
        found: list[str] = json.loads(self.questions.read_text())[:count]
        return found


def open_memory(home: Path, embedder: Embedder) -> Memory:
    """Open a memory at the moment that its talks lead up to."""
    return Memory.open(config=Settings(home=home), embedder=embedder, now=lambda: NOW)


# Building.


def messages_of(talk: Talk) -> list[NewMessage]:
    """Return the messages of a talk, a minute apart."""
    return [
        NewMessage(
            role=cast("Role", role),
            parts=(Part("text", text),),
            created_at=talk.started_at + timedelta(minutes=at),
        )
        for at, (role, text) in enumerate(zip(talk.roles, talk.texts, strict=True))
    ]


def build(place: Place) -> Figures:
    """Build a memory of one size through the product's own path, and the plain table."""
    place.home.mkdir(parents=True, exist_ok=True)
    place.plain.unlink(missing_ok=True)
    fragment_count = int(place.size * FRAGMENT_SHARE)
    corpus, embedder = Corpus(), place.embedder()
    heard: list[str] = []
    figures: Figures = {}
    with open_memory(place.home, embedder) as memory, plain_table(place.plain) as keep:
        started = time.process_time()
        apart = 0.0
        raw_bytes = 0
        for talk in corpus.talks(place.size - fragment_count):
            memory.capture(
                talk.name,
                messages_of(talk),
                agent="benchmark",
                project=talk.project,
                title=talk.title,
                files=talk.files,
            )
            began = time.process_time()
            keep(talk.texts)
            raw_bytes += sum(len(text.encode()) for text in talk.texts)
            heard += talk.texts
            apart += time.process_time() - began
            _show("captured", len(heard), place.size - fragment_count)
        spent = time.process_time() - started - apart
        figures["build_messages_per_cpu_s"] = len(heard) / spent
        notes = list(corpus.notes(fragment_count))
        raw_bytes += sum(len(text.encode()) for text, _ in notes)
        keep([text for text, _ in notes])
        started = time.process_time()
        store_notes(memory, notes)
        figures["store_fragments_per_cpu_s"] = len(notes) / (time.process_time() - started)
        figures |= embed_all(memory, embedder)
    place.questions.write_text(json.dumps(make_questions(heard, 1_000)))
    figures |= {"raw_bytes": raw_bytes, "items": len(heard) + len(notes)}
    place.built.write_text(json.dumps(figures))
    return figures


@contextmanager
def plain_table(path: Path) -> Iterator[Callable[[Sequence[str]], None]]:
    """Make a plain FTS5 table and give the function that adds texts to it."""
    plain = apsw.Connection(str(path))
    plain.execute("PRAGMA journal_mode = off").fetchall()
    plain.execute("PRAGMA synchronous = off").fetchall()
    plain.execute("CREATE VIRTUAL TABLE plain USING fts5(text, tokenize = 'porter unicode61')")

    def keep(texts: Sequence[str]) -> None:
        plain.executemany("INSERT INTO plain (text) VALUES (?)", ((text,) for text in texts))

    plain.execute("BEGIN")
    yield keep
    plain.execute("COMMIT")
    plain.close()


def store_notes(memory: Memory, notes: Sequence[tuple[str, str]]) -> None:
    """Store fragments, each third below an earlier one, and link a few."""
    chance = random.Random(len(notes))
    roots: list[str] = []
    stream = iter(notes)
    done = 0
    while chunk := list(islice(stream, 1_000)):
        drafts = []
        for at, (text, project) in enumerate(chunk):
            below = roots and at % TREE_EVERY == 0
            kind = FRAGMENT_KINDS[at % len(FRAGMENT_KINDS)]
            parent = chance.choice(roots) if below else ""
            drafts.append(Draft(text, kind=kind, parent_id=parent, project=project))
        ids = memory.store_all(drafts)
        roots += [id_ for id_, draft in zip(ids, drafts, strict=True) if not draft.parent_id]
        for id_ in ids[::LINK_EVERY]:
            other = chance.choice(roots)
            if other != id_:
                memory.link(id_, other, "associative")
        done += len(chunk)
        _show("stored", done, len(notes))


def embed_all(memory: Memory, embedder: WordVectors) -> Figures:
    """Give every item its vector; the last few by the product's own small transactions."""
    database = memory.database
    number = database.write(
        lambda db: vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
    )
    with database.read() as db:
        total = vectors.count_waiting(db)
    for done in range(0, max(0, total - EMBED_LAST), EMBED_BATCH):
        with database.read() as db:
            waiting = vectors.waiting(db, limit=min(EMBED_BATCH, total - EMBED_LAST - done))
        keep_vectors(database, embedder, number, waiting)
        _show("embedded", done + len(waiting), total)
    with database.read() as db:
        started = time.process_time()
        fed = vectors.feed(db, memory.sources.vector_index(), number, embedder.dimension)
        feeding = time.process_time() - started
    started = time.process_time() - embedder.spent_s
    small = memory.embed_waiting()
    spent = time.process_time() - embedder.spent_s - started
    _show("embedded", total, total)
    return {
        "index_vectors_per_cpu_s": fed / feeding if fed else 0.0,
        "keep_vectors_per_cpu_s": small / spent if small else 0.0,
    }


def keep_vectors(
    database: Database, embedder: WordVectors, number: int, waiting: Sequence[vectors.Waiting]
) -> None:
    """Store the vectors of some items in one transaction."""
    ns, matrix = [item.n for item in waiting], embedder.embed([item.text for item in waiting])
    database.write(lambda db: vectors.put(db, number, ns, matrix))


def make_questions(texts: Sequence[str], count: int) -> list[str]:
    """Return distinct questions about texts from all over a memory."""
    chance = random.Random(count)
    found: dict[str, None] = {}
    for _ in range(50 * count):
        if question := ask(chance.choice(texts), chance):
            found[question] = None
        if len(found) == count:
            break
    return list(found)


def _show(what: str, done: int, total: int) -> None:
    if done == total or done % 5_000 < TALK_MESSAGES:
        end = "\n" if done == total else ""
        print(f"\r{what} {done:,} of {total:,} ", end=end, file=sys.stderr, flush=True)


# Measuring.


def timed_ms(calls: Iterable[Callable[[], object]], embedder: WordVectors) -> list[float]:
    """Return the CPU time of each call, without that of the embedder."""
    taken = []
    for call in calls:
        spent, started = embedder.spent_s, time.process_time()
        call()
        took = time.process_time() - started
        taken.append((took - (embedder.spent_s - spent)) * 1000)
    return taken


def percentiles(name: str, taken: Sequence[float]) -> Figures:
    """Return the median, the 99th percentile and the mean of some times."""
    middle, high = np.percentile(taken, [50, 99])
    return {
        f"{name}_p50_ms": float(middle),
        f"{name}_p99_ms": float(high),
        f"{name}_mean_ms": float(np.mean(taken)),
    }


@dataclass(slots=True)
class TimedStatements:
    """Stands before a connection and adds up the CPU time of its statements by kind."""

    raw: apsw.Connection
    spent_ms: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    kept: list[tuple[Any, ...]] = field(default_factory=list)

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> TimedStatements:
        """Run a statement to its end."""
        started = time.process_time()
        self.kept = self.raw.execute(sql, params).fetchall()
        self.spent_ms[_kind_of(sql)] += (time.process_time() - started) * 1000
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last statement."""
        return self.kept

    @property
    def in_transaction(self) -> bool:
        """Tell whether the connection is in a transaction."""
        return self.raw.in_transaction

    def close(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - as apsw has it
        """Close the connection."""
        self.raw.close(force)


def _kind_of(sql: str) -> str:
    for sign, kind in ((" MATCH ", "match"), ("_vocabulary", "vocabulary")):
        if sign in sql:
            return kind
    return "vectors" if "FROM vectors" in sql else "rows"


def measure(place: Place) -> Figures:
    """Measure recall and search, whole and by arm."""
    questions = place.load_questions(place.queries + WARM_UP)
    asked, warm = questions[:-WARM_UP], questions[-WARM_UP:]
    embedder = place.embedder()
    found: Figures = {}
    with open_memory(place.home, embedder) as memory:

        def recall_and_log(question: str) -> None:
            memory.recall(question)
            memory.database.write(lambda _: None)  # waits until the log has its entry

        verbs: dict[str, tuple[int, Callable[[str], object]]] = {
            "recall": (len(asked), recall_and_log),
            "recall_unlogged": (len(asked), lambda q: memory.recall(q, log=False)),
            "search": (len(asked), lambda q: memory.search(q, log=False)),
            "deep": (DEEP_QUERIES, lambda q: memory.search(q, deep=True, log=False)),
            "sessions": (DEEP_QUERIES, memory.find_sessions),
            "vector_arm": (
                len(asked),
                lambda q: memory.sources.nearest(memory.sources.embed_query(q), TOP),
            ),
        }
        for name, (count, verb) in verbs.items():
            for question in warm:
                verb(question)
            calls = [partial(verb, question) for question in asked[:count]]
            found |= percentiles(name, timed_ms(calls, embedder))
        found |= statement_times(memory, asked)
    return found


def statement_times(memory: Memory, questions: Sequence[str]) -> Figures:
    """Return what the statements of a recall cost; those with MATCH are the keyword arm."""
    with memory.database.read() as db:
        raw = db.raw
    by_kind: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        timed = TimedStatements(raw)
        db.raw = cast("apsw.Connection", timed)
        memory.recall(question, log=False)
        timed.spent_ms["keyword_arm"] = timed.spent_ms["match"] + timed.spent_ms["vocabulary"]
        for kind in ("match", "vocabulary", "vectors", "rows", "keyword_arm"):
            by_kind[kind].append(timed.spent_ms[kind])
    db.raw = raw
    found: Figures = percentiles("keyword_arm", by_kind.pop("keyword_arm"))
    for kind, taken in by_kind.items():
        found[f"sql_{kind}_p50_ms"] = float(np.median(taken))
    return found


def measure_keyword_start(place: Place) -> Figures:
    """Measure opening and the first recall by keywords alone."""
    return _measure_start(place, NoEmbedder(), "keywords")


def measure_first_answer(place: Place) -> Figures:
    """Measure opening and the first recall by keywords and vectors."""
    return _measure_start(place, place.embedder(), "answer")


def _measure_start(place: Place, embedder: Embedder, name: str) -> Figures:
    question = place.load_questions(1)[0]
    if embedder.dimension:
        embedder.embed([question])
    cpu, wall = time.process_time(), time.perf_counter()
    memory = open_memory(place.home, embedder)
    opened = time.process_time()
    memory.recall(question, log=False)
    found = {
        f"{name}_open_cpu_ms": (opened - cpu) * 1000,
        f"{name}_start_cpu_ms": (time.process_time() - cpu) * 1000,
        f"{name}_start_wall_ms": (time.perf_counter() - wall) * 1000,
    }
    memory.close()
    return found


def measure_import(_: Place) -> Figures:
    """Measure what the import of the library costs before anything can be opened."""
    script = (
        "import time; t = time.process_time(); import lore.memory; print(time.process_time() - t)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    return {"import_cpu_ms": float(done.stdout) * 1000}


def measure_resident(place: Place) -> Figures:
    """Measure the memory of a process that has answered some questions."""
    with open_memory(place.home, place.embedder()) as memory:
        before = _smaps()
        for question in place.load_questions(RESIDENT_RECALLS):
            memory.recall(question, log=False)
        after = _smaps()
    return {
        "resident_mb": after["Rss"],
        "resident_pss_mb": after["Pss"],
        "resident_private_mb": after["Anonymous"],
        "resident_before_mb": before["Rss"],
    }


def _smaps() -> dict[str, float]:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    fields = (line.split() for line in lines)
    return {name.rstrip(":"): int(size) / 1024 for name, size, *_ in fields}


def measure_capture(place: Place) -> Figures:
    """Measure capture in batches, in a memory of its own."""
    talks = list(Corpus().talks(CAPTURED))
    new = [message for talk in talks for message in messages_of(talk)]
    taken: list[float] = []
    with (
        tempfile.TemporaryDirectory(dir=place.root) as folder,
        open_memory(Path(folder), NoEmbedder()) as memory,
    ):
        wall = time.perf_counter()
        for start in range(0, len(new), CAPTURE_BATCH):
            began = time.process_time()
            memory.capture(
                f"talk-{start}", new[start : start + CAPTURE_BATCH], project="/code/a-service"
            )
            taken.append(time.process_time() - began)
        waited = time.perf_counter() - wall
    return {
        "capture_per_cpu_s": len(new) / sum(taken),
        "capture_per_wall_s": len(new) / waited,
    }


def measure_size(place: Place) -> Figures:
    """Measure the files against the raw text and the vectors."""
    built: Figures = json.loads(place.built.read_text())
    with open_memory(place.home, NoEmbedder()) as memory:
        path, count = memory.database.path, memory.stats().vectors
    index = sum(file.stat().st_size for file in place.home.glob("*.vectors/*"))
    database, vector_bytes = path.stat().st_size, count * 2 * WordVectors.dimension
    return built | {
        "raw_mb": built["raw_bytes"] / 1e6,
        "database_mb": database / 1e6,
        "vectors_mb": vector_bytes / 1e6,
        "index_mb": index / 1e6,
        "text_ratio": (database - vector_bytes) / built["raw_bytes"],
    }


def measure_baselines(place: Place) -> Figures:
    """Measure numpy over the vectors and FTS5 over the texts, and how exact the index is."""
    questions = place.load_questions(min(place.queries, BASELINE_QUERIES))
    embedder = place.embedder()
    queries = embedder.embed(questions)
    with open_memory(place.home, embedder) as memory:
        ns, matrix = _load_vectors(memory)
        found = [set(memory.sources.nearest(query, TOP)[0].tolist()) for query in queries]
    exact = [_brute_force(matrix, query) for query in queries]
    shared = [len(hits & set(ns[at].tolist())) for hits, at in zip(found, exact, strict=True)]
    calls = [partial(_brute_force, matrix, query) for query in queries]
    plain = apsw.Connection(str(place.plain), flags=apsw.SQLITE_OPEN_READONLY)
    plain.execute(f"PRAGMA mmap_size = {1 << 28}").fetchall()
    matches = [words.match_any(words.terms(question)) for question in questions]
    keyword_calls = [partial(_search_plain, plain, match) for match in matches]
    for call in keyword_calls[:WARM_UP]:
        call()
    return {
        "vector_recall_at_50": float(np.mean(shared)) / TOP,
        **percentiles("numpy", timed_ms(calls, embedder)),
        **percentiles("fts5", timed_ms(keyword_calls, embedder)),
    }


def _load_vectors(memory: Memory) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    with memory.database.read() as db:
        rows = db.rows("SELECT n, vector FROM vectors")
    halves = np.frombuffer(b"".join(row[1] for row in rows), np.float16)
    matrix = halves.reshape(len(rows), WordVectors.dimension).astype(np.float32)
    return np.array([row[0] for row in rows], np.int64), matrix


def _brute_force(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.int64]:
    scores = matrix @ query
    best = np.argpartition(scores, -TOP)[-TOP:]
    return best[np.argsort(-scores[best])]


def _search_plain(plain: apsw.Connection, match: str) -> list[tuple[Any, ...]]:
    return plain.execute(
        "SELECT rowid, rank FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?", (match, TOP)
    ).fetchall()


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
        [*command, "--sizes", str(place.size), "--queries", str(place.queries)],
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


# Reporting.


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
    parser.add_argument("--phase", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    if asked.phase:
        phases = {name: phase for name, (_, phase) in PHASES.items()} | {"build": build}
        print(json.dumps(phases[asked.phase](Place(asked.keep, sizes[0], asked.queries))))
        return
    results = json.loads(asked.json.read_text()) if asked.json.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        root = asked.keep or Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        for size in sizes:
            results[str(size)] = run(Place(root.resolve(), size, asked.queries))
            print_table(size, results[str(size)])
            asked.json.parent.mkdir(exist_ok=True)
            asked.json.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

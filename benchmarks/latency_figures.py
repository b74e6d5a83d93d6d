"""What `latency` measures in a memory, one function for each group of figures."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from corpus import Corpus, WordVectors
from latency_memory import (
    Figures,
    Place,
    messages_of,
    open_memory,
)
from lore.embed import Embedder
from lore.embed.embedder import NoEmbedder
from lore.index.quantization import unpack_rows
from lore.memory import Memory
from lore.recall import candidates
from lore.recall.question import parse
from lore.store.sqlite import SqliteConnection
from lore.text import words

WARM_UP = 20
DEEP_QUERIES, BASELINE_QUERIES, RESIDENT_RECALLS = 50, 100, 50
CAPTURED, CAPTURE_BATCH = 5_000, 100
TOP = 50


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
        verbs: dict[str, tuple[int, Callable[[str], object]]] = {
            "recall": (len(asked), memory.recall),
            "recall_unlogged": (len(asked), lambda q: memory.recall(q, log=False)),
            "search": (len(asked), lambda q: memory.search(q, log=False)),
            "deep": (DEEP_QUERIES, lambda q: memory.search(q, deep=True, log=False)),
            "sessions": (DEEP_QUERIES, memory.search.find_sessions),
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
        assert isinstance(db, SqliteConnection)
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
        path, count = memory.database.path, memory.maintenance.stats().vectors
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
    """Measure numpy over the vectors and FTS5 over the texts, and how exact the index is.

    FTS5 gets the same words as Lore's keyword search, and for comparison all words.
    """
    questions = place.load_questions(min(place.queries, BASELINE_QUERIES))
    embedder = place.embedder()
    queries = embedder.embed(questions)
    with open_memory(place.home, embedder) as memory:
        ns, matrix = _load_vectors(memory)
        found = [set(memory.sources.nearest(query, TOP)[0].tolist()) for query in queries]
        matches = _matches(memory, questions)
    exact = [_brute_force(matrix, query) for query in queries]
    shared = [len(hits & set(ns[at].tolist())) for hits, at in zip(found, exact, strict=True)]
    calls = [partial(_brute_force, matrix, query) for query in queries]
    plain = apsw.Connection(str(place.plain), flags=apsw.SQLITE_OPEN_READONLY)
    plain.execute(f"PRAGMA mmap_size = {1 << 28}").fetchall()
    all_calls = [
        partial(_search_plain, plain, words.match_any(words.split(question)))
        for question in questions
    ]
    keyword_calls = [partial(_search_plain, plain, match) for match in matches]
    for call in (*keyword_calls[:WARM_UP], *all_calls[:WARM_UP]):
        call()
    return {
        "vector_recall_at_50": float(np.mean(shared)) / TOP,
        **percentiles("numpy", timed_ms(calls, embedder)),
        **percentiles("fts5", timed_ms(keyword_calls, embedder)),
        **percentiles("fts5_all_words", timed_ms(all_calls, embedder)),
    }


def _matches(memory: Memory, questions: Sequence[str]) -> list[str]:
    """Return the keyword queries as recall makes them: without stop and very common words."""
    matches = []
    with memory.database.read() as db:
        for text in questions:
            question = parse(text, memory.database.now())
            terms, _ = candidates._weigh_terms(memory.sources, db, question)
            matches.append(question.match(terms))
    return matches


def _load_vectors(memory: Memory) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    with memory.database.read() as db:
        rows = db.rows("SELECT n, vector FROM vectors")
    matrix = unpack_rows(b"".join(row[1] for row in rows), WordVectors.dimension)
    return np.array([row[0] for row in rows], np.int64), matrix


def _brute_force(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.int64]:
    scores = matrix @ query
    best = np.argpartition(scores, -TOP)[-TOP:]
    return best[np.argsort(-scores[best])]


def _search_plain(plain: apsw.Connection, match: str) -> list[tuple[Any, ...]]:
    return plain.execute(
        "SELECT rowid, rank FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?", (match, TOP)
    ).fetchall()

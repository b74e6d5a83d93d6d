"""Write the sets that `train_encoder.py` reads: passages, questions, evidence, BM25 candidates.

    uv run python benchmarks/encoder_sets.py --data DATA --data benchmarks/data --out sets

Files of questions over coding sessions (`coding-qa*`, `session-qa*`), conversations (`chats*`,
`locomo*`), chats with an assistant (`beam*`) and passages (`multihop*`) are read as `lore eval
retrieval` reads them. Each set is one file: per conversation, session or project a line with its
documents, cut into passages as the product cuts them, then one line per question.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from lore.embed.embedder import NoEmbedder
from lore.evals.datasets import Query, RetrievalTask, open_scratch_memory, read_tasks
from lore.recall.question import in_first_person, parse
from lore.store import items, messages, vectors
from lore.store.database import Connection
from lore.text import words

SETS = ("coding-qa", "session-qa", "chats", "locomo", "beam", "multihop")

CANDIDATES = 100
"""Best documents by BM25 kept for each question: negatives, and one arm of the fused baseline."""

K1, B = 1.2, 0.75


def main() -> None:
    """Write one file per set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--corpus", type=Path, help="folder of the coding sessions")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for folder in options.data:
        for path in sorted(folder.glob("*.jsonl.gz")):
            if path.name.startswith(SETS):
                target = options.out / f"{folder.name}.{path.name}"
                write_set(target, read_tasks(path, options.corpus))


class Recorder(NoEmbedder):
    """Stands in for an embedder, so that everything to embed waits in the queue."""

    identity, dimension = "recorder", 1


def write_set(path: Path, tasks: list[RetrievalTask]) -> None:
    """Write the documents and questions of a set, as capture stores and recall asks them."""
    count = 0
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        for task in tasks:
            with open_scratch_memory(Recorder()) as memory:
                units = task.fill(memory)
                with memory.database.read() as db:
                    waiting = vectors.pending_items(db, limit=10**9)[::-1]
                    ids = items.ids_of(db, [item.n for item in waiting])
                    questions = [
                        _question(db, query, memory.database.now()) for query in task.queries
                    ]
            place_of: dict[str, list[int]] = defaultdict(list)
            for place, item in enumerate(waiting):
                place_of[units.get(ids[item.n], "")].append(place)
            _write(stream, {"name": task.name, "passages": [item.texts for item in waiting]})
            index = Bm25([" ".join(item.texts) for item in waiting])
            for query, text in zip(task.queries, questions, strict=True):
                groups = [
                    sorted(place for unit in group for place in place_of[unit])
                    for group in query.groups
                ]
                if all(groups):
                    _write(stream, {
                        "question": text, "category": query.category,
                        "groups": groups, "bm25": index.best(query.text, CANDIDATES),
                    })  # fmt: skip
                    count += 1
    print(f"{path.name}: {count} questions")


def _question(db: Connection, query: Query, now: datetime) -> str:
    """Return a question as recall embeds it."""
    core = parse(query.text, query.now or now).core
    names = [word for word in words.raw_words(core) if word[:1].isupper()]
    return in_first_person(core, messages.find_speakers(db, names))


def _write(stream: Any, row: dict[str, Any]) -> None:
    stream.write(json.dumps(row, ensure_ascii=False) + "\n")


class Bm25:
    """BM25 over whole documents, without stop words."""

    def __init__(self, texts: list[str]) -> None:
        counts = [Counter(words.split(text)) for text in texts]
        self._lengths = np.array([sum(count.values()) for count in counts], np.float64)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, count in enumerate(counts):
            for word, times in count.items():
                self._postings[word].append((place, times))

    def best(self, question: str, most: int) -> list[tuple[int, float]]:
        """Return the best documents for a question with their scores."""
        total = np.zeros(len(self._lengths))
        norm = K1 * (1 - B + B * self._lengths / (self._lengths.mean() or 1.0))
        for word in words.search_terms(question):
            matches = self._postings.get(word)
            if matches:
                weight = math.log(1 + (len(total) - len(matches) + 0.5) / (len(matches) + 0.5))
                for place, times in matches:
                    total[place] += weight * times * (K1 + 1) / (times + norm[place])
        order = np.argsort(-total, kind="stable")[:most]
        return [(int(place), round(float(total[place]), 3)) for place in order if total[place] > 0]


if __name__ == "__main__":
    main()

"""Baselines: what plain methods and installed peers find, on the same vectors."""

from __future__ import annotations

import importlib.util
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.evals.scores import Outcome, Scores, score
from lore.evals.trials import DEEP, Ask, Trial
from lore.text import words

_K1, _B = 1.2, 0.75
_RRF_K = 60

Rank = Callable[[Ask], list[int]]
Vector = NDArray[np.float32]


def score_all(trials: Sequence[Trial], embedder: Embedder) -> dict[str, Scores]:
    """Score every baseline that can run here."""
    makers: dict[str, Callable[[Trial, Embedder], Rank]] = {"bm25": _bm25}
    if embedder.dimension:
        makers |= {"cosine": _cosine, "rrf60": _rrf}
        if importlib.util.find_spec("chromadb"):
            makers["chroma"] = _chroma
        if importlib.util.find_spec("mem0"):
            makers["mem0"] = _mem0
    found = {}
    for name, make in makers.items():
        outcomes = [
            outcome for trial in trials for outcome in _outcomes(trial, make(trial, embedder))
        ]
        found[name] = score(outcomes, trials[0].apart)
    return found


def _outcomes(trial: Trial, rank: Rank) -> list[Outcome]:
    outcomes = []
    for ask in trial.asks:
        started = time.process_time()
        places = rank(ask)
        units = tuple(dict.fromkeys(trial.docs[place].unit for place in places))[:DEEP]
        took_ms = (time.process_time() - started) * 1000
        outcomes.append(Outcome(ask.category, units, ask.gold, took_ms))
    return outcomes


def _bm25(trial: Trial, _embedder: Embedder) -> Rank:
    """Plain BM25 over each text, stop words left out."""
    counts = [Counter(words.split(doc.text)) for doc in trial.docs]
    lengths = np.array([sum(count.values()) for count in counts], np.float64)
    average = lengths.mean() or 1.0
    postings: dict[str, list[tuple[int, int]]] = {}
    for place, count in enumerate(counts):
        for word, times in count.items():
            postings.setdefault(word, []).append((place, times))

    def rank(ask: Ask) -> list[int]:
        total = np.zeros(len(counts))
        for word in words.terms(ask.text):
            found = postings.get(word, [])
            if not found:
                continue
            weight = math.log(1 + (len(counts) - len(found) + 0.5) / (len(found) + 0.5))
            for place, times in found:
                norm = _K1 * (1 - _B + _B * lengths[place] / average)
                total[place] += weight * times * (_K1 + 1) / (times + norm)
        order = np.argsort(-total, kind="stable")
        return [int(place) for place in order[: 40 * DEEP] if total[place] > 0]

    return rank


def _vectors(trial: Trial, embedder: Embedder) -> Vector:
    return embedder.embed([doc.text for doc in trial.docs])


def _cosine(trial: Trial, embedder: Embedder) -> Rank:
    matrix = _vectors(trial, embedder)

    def rank(ask: Ask) -> list[int]:
        query = embedder.embed([ask.text], query=True)[0]
        return [int(place) for place in np.argsort(-(matrix @ query), kind="stable")[: 40 * DEEP]]

    return rank


def _rrf(trial: Trial, embedder: Embedder) -> Rank:
    arms = (_bm25(trial, embedder), _cosine(trial, embedder))

    def rank(ask: Ask) -> list[int]:
        total: Counter[int] = Counter()
        for arm in arms:
            for place, doc in enumerate(arm(ask)[:200], 1):
                total[doc] += 1 / (_RRF_K + place)  # type: ignore[assignment]  # scores, not counts
        return [doc for doc, _ in total.most_common()]

    return rank


def _chroma(trial: Trial, embedder: Embedder) -> Rank:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    name = f"lore-{abs(hash(trial.name))}"
    collection = client.create_collection(name, metadata={"hnsw:space": "cosine"})
    matrix = _vectors(trial, embedder)
    for start in range(0, len(matrix), 2_000):
        part = range(start, min(start + 2_000, len(matrix)))
        collection.add(
            ids=[str(i) for i in part], embeddings=matrix[part.start : part.stop].tolist()
        )

    def rank(ask: Ask) -> list[int]:
        query = embedder.embed([ask.text], query=True)[0]
        found = collection.query(query_embeddings=[query.tolist()], n_results=min(200, len(matrix)))
        return [int(id_) for id_ in found["ids"][0]]

    return rank


def _mem0(trial: Trial, embedder: Embedder) -> Rank:
    """Score mem0's own local vector store as its `Memory` calls it, without a model."""
    import tempfile

    from mem0.vector_stores.faiss import FAISS

    matrix = _vectors(trial, embedder)
    store = FAISS(
        collection_name="lore",
        path=tempfile.mkdtemp(prefix="lore-mem0-"),
        embedding_model_dims=embedder.dimension,
        distance_strategy="cosine",
    )
    store.insert(
        vectors=matrix.tolist(),
        payloads=[{"data": doc.text} for doc in trial.docs],
        ids=[str(place) for place in range(len(matrix))],
    )

    def rank(ask: Ask) -> list[int]:
        query = embedder.embed([ask.text], query=True)[0]
        hits = store.search(query=ask.text, vectors=query.tolist(), limit=min(200, len(matrix)))
        return [int(hit.id) for hit in hits]

    return rank

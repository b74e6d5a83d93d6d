"""How quick and how exact are the local embedders, beside a plain numpy implementation?

Each engine runs in a process of its own, on one thread, one after the other in every round;
the best round counts, because other work on the machine can only make a round slower.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lore.embed.local import LocalEmbedder
from lore.embed.models import find_model, find_weights
from lore.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
BASELINE = "numpy"
ENGINES = (BASELINE, "local float32", "local int8", "sentence-transformers")
ROUNDS = 3
NEIGHBOURS = 10
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Modules whose docstrings serve as real technical English; their names are fixed, so two
# engines always see the same texts.
DOCUMENTED = (argparse, inspect, json, os, random, subprocess, tempfile)
WORDS = ("time", "people", "way", "water", "day", "thing", "life", "world", "school", "state")
QUERY = "How do I undo the last commit but keep my changes?"

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def texts_of(tokens: int, count: int) -> list[str]:
    """Return texts of common words, each of which is one token."""
    chance = random.Random(tokens)
    return [" ".join(chance.choices(WORDS, k=tokens - 2)) for _ in range(count)]


def documented_texts() -> list[str]:
    """Return the docstrings of some modules of the standard library."""
    found = set()
    for module in DOCUMENTED:
        for _, member in inspect.getmembers(module):
            found.add(inspect.getdoc(member) or "")
            if inspect.isclass(member):
                found |= {inspect.getdoc(part) or "" for part in vars(member).values()}
    return sorted(text for text in found if len(text) > 30)[:240]


def get_weights() -> Path:
    """Return the folder of MiniLM's files."""
    model = find_model("local", "all-MiniLM-L6-v2")
    assert model is not None
    folder = find_weights(Settings(), model)
    if folder is None:
        sys.exit(f"The weights are not installed (package {model.package}).")
    return folder


def open_engine(engine: str, home: Path) -> Embed:
    """Return the embedding function of an engine."""
    folder = get_weights()
    if engine == BASELINE:
        spec = importlib.util.spec_from_file_location(
            "reference", ROOT / "tests" / "embed" / "reference.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        reference = module.Reference(folder)
        return lambda texts: np.asarray(reference.embed(list(texts)))
    if engine.startswith("local"):
        model = find_model("local", "all-MiniLM-L6-v2")
        assert model is not None
        settings = Settings(home=home, embed_precision=engine.split()[1])
        return LocalEmbedder(model, folder, settings).embed
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: np.asarray(loaded.encode(list(texts), normalize_embeddings=True))


def resident_mb() -> float:
    """Return the resident memory of this process; its peak where the system tells no more."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return pages * resource.getpagesize() / 1024**2


def cpu_ms(call: Callable[[], object], times: int) -> float:
    """Return the CPU time of one call, as the mean of several."""
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) * 1000 / times


def measure(engine: str, home: Path, vectors: Path) -> dict[str, float]:
    """Measure one engine in this process and save its vectors for comparison."""
    start = time.process_time()
    embed = open_engine(engine, home)
    embed([QUERY])
    figures = {
        "start_cpu_ms": (time.process_time() - start) * 1000,
        "resident_mb": resident_mb(),
        "query_cpu_ms": cpu_ms(partial(embed, [QUERY]), 40),
    }
    for tokens, count in ((20, 100), (200, 16)):
        texts = texts_of(tokens, count)
        embed(texts[:2])
        figures[f"texts_per_cpu_s_{tokens}"] = count * 1000 / cpu_ms(partial(embed, texts), 1)
    figures["resident_after_batches_mb"] = resident_mb()
    if not vectors.exists():
        np.save(vectors, embed(documented_texts()))
    return figures


def measure_apart(engine: str, home: Path, vectors: Path) -> dict[str, float]:
    """Measure one engine in a fresh process."""
    command = [sys.executable, __file__, "--engine", engine, "--home", str(home)]
    done = subprocess.run(
        [*command, "--vectors", str(vectors)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def best_of(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the best figure of all rounds: the highest rate, else the lowest."""
    return {
        key: (max if "per_cpu_s" in key else min)(figures[key] for figures in rounds)
        for key in rounds[0]
    }


def agreement(found: NDArray[np.float32], expected: NDArray[np.float32]) -> dict[str, float]:
    """Return how near the vectors are, and how many nearest neighbours they share."""
    cosines = (found * expected).sum(axis=1)
    shared = [
        len(set(one) & set(other)) / NEIGHBOURS
        for one, other in zip(_nearest(found), _nearest(expected), strict=True)
    ]
    return {
        "cosine_min": float(cosines.min()),
        "cosine_mean": float(cosines.mean()),
        "neighbours_kept": float(np.mean(shared)),
    }


def _nearest(vectors: NDArray[np.float32]) -> list[list[int]]:
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    nearest: list[list[int]] = np.argsort(-scores, axis=1)[:, :NEIGHBOURS].tolist()
    return nearest


def add_ratios(results: dict[str, dict[str, float]]) -> None:
    """Add to each engine how many times quicker than the baseline it is."""
    base = results[BASELINE]
    for figures in results.values():
        figures["query_ratio"] = base["query_cpu_ms"] / figures["query_cpu_ms"]
        for tokens in (20, 200):
            key = f"texts_per_cpu_s_{tokens}"
            figures[f"ratio_{tokens}"] = figures[key] / base[key]


def print_table(results: dict[str, dict[str, float]]) -> None:
    """Print one line for each engine."""
    print("CPU time on one thread; x is how many times quicker than numpy in the same run")
    print(
        f"{'engine':<22}{'query ms':>9}{'x':>6}{'20 tok':>10}{'x':>6}{'200 tok':>10}{'x':>6}"
        f"{'cos min':>10}{'mean':>10}{'top 10':>8}{'start ms':>10}{'MB':>6}{'batch MB':>9}"
    )
    for engine, row in results.items():
        print(
            f"{engine:<22}{row['query_cpu_ms']:>9.2f}{row['query_ratio']:>6.1f}"
            f"{row['texts_per_cpu_s_20']:>10.0f}{row['ratio_20']:>6.1f}"
            f"{row['texts_per_cpu_s_200']:>10.1f}{row['ratio_200']:>6.1f}"
            f"{row['cosine_min']:>10.6f}{row['cosine_mean']:>10.6f}"
            f"{row['neighbours_kept']:>8.1%}{row['start_cpu_ms']:>10.0f}"
            f"{row['resident_mb']:>6.0f}{row['resident_after_batches_mb']:>9.0f}"
        )


def compare(target: Path) -> None:
    """Measure every engine that is installed, print the table and write the results."""
    engines = [
        engine
        for engine in ENGINES
        if engine != "sentence-transformers"
        or importlib.util.find_spec("sentence_transformers") is not None
    ]
    rounds: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        saved = {engine: home / f"{engine}.npy" for engine in engines}
        first = {engine: measure_apart(engine, home, saved[engine]) for engine in engines}
        for _ in range(ROUNDS):
            for engine in engines:
                rounds[engine].append(measure_apart(engine, home, saved[engine]))
        expected = np.load(saved[BASELINE])
        results = {
            engine: {
                **best_of(rounds[engine]),
                "first_start_cpu_ms": first[engine]["start_cpu_ms"],
                **agreement(np.load(saved[engine]), expected),
            }
            for engine in engines
        }
    add_ratios(results)
    print_table(results)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"rounds": ROUNDS, "engines": results}, indent=1) + "\n")


def main() -> None:
    """Compare all engines, or measure one of them for the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    results = ROOT / "benchmarks" / "results" / "embed.json"
    parser.add_argument("--json", type=Path, default=results, metavar="FILE")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--vectors", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.engine:
        print(json.dumps(measure(chosen.engine, chosen.home, chosen.vectors)))
    else:
        compare(chosen.json)


if __name__ == "__main__":
    main()

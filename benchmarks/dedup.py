"""From which cosine on two fragments say the same: precision and recall on labelled pairs.

    uv run python benchmarks/dedup.py [--wrong] [--low]

`dedup_pairs.jsonl` names pairs of statements by where they stand in the evaluation data and how
a person judged them: the same (keeping both would keep one thing twice), related (the same matter
with another value, moment or side) or different. The texts are read from there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from lore.digest import placement
from lore.embed import open_embedder
from lore.evals.datasets import Raw, read_rows
from lore.settings import load
from lore.text import entities

BENCH = Path(__file__).parents[1] / ".." / "shared" / "bench"
PAIRS = Path(__file__).with_name("dedup_pairs.jsonl")
THRESHOLDS = (0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.92, 0.935, 0.95)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements and what a person said of them."""

    kind: str
    label: str
    one: str
    other: str
    cosine: float = 0.0


def texts() -> dict[tuple[str, str], str]:
    """Return every message of the evaluation data, by conversation and place."""
    found: dict[tuple[str, str], str] = {}
    for raw in read_rows(BENCH / "beam-100k.jsonl.gz"):
        found |= {(raw["id"], str(m["id"])): m["content"] for m in raw["messages"]}
    for raw in read_rows(BENCH / "locomo.jsonl.gz"):
        found |= {(raw["id"], turn["id"]): turn["text"] for turn in raw["turns"]}
    for raw in read_rows(BENCH / "coding-sessions.jsonl.gz"):
        found |= {(raw["sid"], str(n)): text for n, (_, text, _) in enumerate(raw["turns"])}
    return found


def labelled() -> list[Pair]:
    """Return the pairs with their texts and the cosines of the shipped embedder."""
    said = texts()
    pairs = []
    for line in PAIRS.read_bytes().splitlines():
        row: Raw = orjson.loads(line)
        one = _span(said, row["in"][0], row["a"])
        pairs.append((row["kind"], row["label"], one, _span(said, row["in"][-1], row["b"])))
    with tempfile.TemporaryDirectory() as home:
        opened = open_embedder(load(home=Path(home)).settings)
        if opened.notice:
            sys.exit(opened.notice)
        rows_ = opened.embedder.embed([text for pair in pairs for text in pair[2:]])
    near = np.sum(rows_[0::2] * rows_[1::2], axis=1)
    return [Pair(*pair, float(cosine)) for pair, cosine in zip(pairs, near, strict=True)]


def _span(said: dict[tuple[str, str], str], talk: str, place: list[str | int]) -> str:
    message, start, end = place
    return said[talk, str(message)][int(start) : int(end)]


def table(pairs: list[Pair], *, guarded: bool) -> None:
    """Print precision and recall of 'the same' for each threshold."""
    total = sum(pair.label == "same" for pair in pairs)
    for line in THRESHOLDS:
        merged = [p for p in pairs if p.cosine >= line]
        if guarded:
            merged = [p for p in merged if entities.values_agree(p.one, p.other)]
        right = sum(pair.label == "same" for pair in merged)
        precision = f"{right / len(merged):.3f}" if merged else "  –  "
        recall = f"{right / total:.3f}" if total else "  –  "
        print(f"   ≥ {line:<6} {len(merged):>4} merged   precision {precision}   recall {recall}")


def main() -> None:
    """Print the tables by kind, without and with the rule that no values differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="show what is wrongly merged")
    chosen = parser.parse_args()
    if not BENCH.exists():
        sys.exit("The evaluation data is not here: nothing to measure.")
    pairs = labelled()
    by_kind: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_kind[pair.kind].append(pair)
    groups = {"all kinds": pairs, **dict(sorted(by_kind.items(), key=lambda kv: -len(kv[1])))}
    for kind, group in groups.items():
        counts = {label: sum(p.label == label for p in group) for label in
                  ("same", "related", "different")}  # fmt: skip
        print(f"\n{kind}: {len(group)} pairs, {counts}")
        print("  by cosine alone")
        table(group, guarded=False)
        print("  and no value differs")
        table(group, guarded=True)
    thresholds = {str(kind): line for kind, line in placement.THRESHOLDS.items()}
    if chosen.wrong:
        for pair in pairs:
            line = thresholds.get(pair.kind, placement.DEFAULT_THRESHOLD)
            is_merged = pair.cosine >= line and entities.values_agree(pair.one, pair.other)
            if is_merged != (pair.label == "same") and pair.cosine > 0.75:
                print(f"{pair.label} {pair.cosine:.3f} {pair.kind}\n   {pair.one}\n   {pair.other}")


if __name__ == "__main__":
    main()

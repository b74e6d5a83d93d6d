"""How many secrets are caught, how many benign lines are touched, and how quick is it?

The project's own corpus stands in `redaction_corpus`; a second one, `redaction_heldout`, is made
by rules that were not looked at when the redactor was written, and is used when it is there.
Speed is measured over real transcripts when they are there, beside a plain copy of the text.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from lore.text.secrets import Redactor

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPTS = ROOT.parent / "shared" / "bench" / "transcripts"
CORPORA = ("redaction_corpus", "redaction_heldout")
SEED = 20261115
ROUNDS = 3
KEY = b"a key that is only for measuring"
PLAIN = "The deploy script reads its settings, builds the image and runs the tests.\n" * 40


def measure(redactor: Redactor, corpus: ModuleType) -> dict[str, Any]:
    """Return recall and benign lines touched, as a whole and for each kind."""
    total: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    for kind, line, secret in corpus.secrets(SEED):
        total[kind] += 1
        caught[kind] += secret not in redactor.redact(line)
    lines: Counter[str] = Counter()
    touched: Counter[str] = Counter()
    for kind, line in corpus.benign(SEED):
        lines[kind] += 1
        touched[kind] += redactor.redact(line) != line
    return {
        "secret_kinds": len(total),
        "benign_kinds": len(lines),
        "recall": caught.total() / total.total(),
        "benign_touched": touched.total() / lines.total(),
        "recall_by_kind": {kind: caught[kind] / count for kind, count in total.items()},
        "touched_by_kind": {kind: touched[kind] / count for kind, count in lines.items()},
    }


def texts() -> Iterator[str]:
    """Yield the lines of the transcripts, or made-up ones where there are none."""
    found = sorted(TRANSCRIPTS.glob("*.gz"))
    for path in found:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
            yield from stream
    if not found:
        yield from [PLAIN] * 2_000


def speed(redactor: Redactor) -> dict[str, float]:
    """Return megabytes a CPU second, best of some rounds, and texts with a secret in them."""
    lines = list(texts())
    size = sum(len(line.encode("utf-8", "surrogatepass")) for line in lines)
    best = float("inf")
    touched = 0
    for _ in range(ROUNDS):
        started = time.process_time()
        touched = sum(redactor.redact(line) is not line for line in lines)
        best = min(best, time.process_time() - started)
    return {
        "megabytes": size / 1e6,
        "megabytes_per_s": size / 1e6 / best,
        "lines": len(lines),
        "lines_touched": touched,
    }


def print_corpus(name: str, found: dict[str, Any]) -> None:
    """Print what was found in one corpus; kinds that are not perfect are named."""
    print(f"\n{name}: {found['secret_kinds']} kinds of secrets, {found['benign_kinds']} benign")
    for kind, share in found["recall_by_kind"].items():
        print(f"  {kind:<24}{share:>8.1%}{'' if share == 1 else '   <- missed'}")
    for kind, share in found["touched_by_kind"].items():
        print(f"  {kind:<24}{share:>8.1%}{'' if share == 0 else '   <- touched'}")
    print(f"  recall {found['recall']:.4f}   benign touched {found['benign_touched']:.4f}")


def main() -> None:
    """Measure the corpora that are there, and the speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    results = ROOT / "benchmarks" / "results" / "redaction.json"
    parser.add_argument("--json", type=Path, default=results, metavar="FILE")
    parser.add_argument("--own", action="store_true", help="leave the held-out corpus alone")
    chosen = parser.parse_args()
    redactor = Redactor(KEY)
    report: dict[str, Any] = {"seed": SEED}
    for name in CORPORA[:1] if chosen.own else CORPORA:
        if importlib.util.find_spec(name) is None:
            print(f"\n{name} is not here.")
            continue
        report[name] = measure(redactor, importlib.import_module(name))
        print_corpus(name, report[name])
    report["speed"] = speed(redactor)
    print(f"\n{report['speed']['megabytes_per_s']:.1f} MB/s", report["speed"])
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

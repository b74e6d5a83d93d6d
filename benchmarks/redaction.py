"""How many secrets are caught, how many benign lines are touched, and how quick is it?

The corpora: the project's own, four that were held out and then opened to mend what they
showed, and one that the rules' author has not seen; each is used when it is there. A secret
counts as caught when less than half of it can still be read. Speed is measured over real
transcripts when they are there, and over text that is made to be slow.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from lore.text.secrets import Redactor
from redaction_heldout import leaks

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPTS = ROOT.parent / "shared" / "bench" / "transcripts"
CORPORA = {
    "own": "redaction_corpus", "opened": "redaction_heldout", "second": "redaction_second",
    "third": "redaction_third", "fourth": "redaction_fourth", "unseen": "fifth",
}  # fmt: skip
HOSTILE_BYTES = 1_000_000
HOSTILE = (
    "token=", "API_KEY=", "password: ", '"token":"', '\\\\"token\\\\":\\\\"', '"', "'", "\\", ":",
    "eyJ", "eyJhbGciOi.", "QUJDREVGR0hJSktM", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nA1b2C3d4A1b2C3d4A1b2C3d4\n", "Private-Lines: 1\n", "://a:",
    "a:b1c2d3e4@", "Cookie: a=", " -p", "curl -u a:", "echo a | ", "Bearer ", "[secret:",
    "password is ", "Passwort ", "login('a', ", " is the password", "chpasswd ",
)  # fmt: skip
"""What repeats a beginning without its end, or a name without its value."""

VARIED = (
    "password token key secret is the for set to login bob admin api Passwort clave auth = : -p ( '"
    ' " , value -u a: fill |'
)
"""Words that make a place with almost any other; no two lines of them are the same."""

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
        caught[kind] += not leaks(secret, redactor.redact(line))
    lines: Counter[str] = Counter()
    touched: Counter[str] = Counter()
    for kind, line in corpus.benign(SEED):
        lines[kind] += 1
        touched[kind] += redactor.redact(line) != line
    return {
        "secret_kinds": len(total),
        "benign_kinds": len(lines),
        "secrets": total.total(),
        "benign_lines": lines.total(),
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


def hostile(redactor: Redactor) -> dict[str, float]:
    """Return megabytes a CPU second for each text that is made to be slow."""
    speeds = {}
    made = {piece: piece * (HOSTILE_BYTES // len(piece)) for piece in HOSTILE}
    for name, text in {**made, "varied words": varied()}.items():
        started = time.process_time()
        redactor.redact(text)
        speeds[name] = len(text) / 1e6 / (time.process_time() - started)
    return speeds


def varied() -> str:
    """Return text of places for secrets that does not repeat itself."""
    chance = random.Random(SEED)
    words: list[str] = []
    while len(words) * 6 < HOSTILE_BYTES:
        drawn = "".join(chance.choices("abcXYZ019", k=chance.randrange(2, 9)))
        words.append(chance.choice(VARIED.split()) if chance.random() < 0.8 else drawn)
    return " ".join(words)


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
    parser.add_argument(
        "--part", choices=CORPORA, action="append", help="only this corpus; can be repeated"
    )
    parser.add_argument("--hostile", action="store_true", help="also text that is made to be slow")
    chosen = parser.parse_args()
    redactor = Redactor(KEY)
    report: dict[str, Any] = {"seed": SEED}
    for part in chosen.part or CORPORA:
        if importlib.util.find_spec(CORPORA[part]) is None:
            print(f"\n{part}: {CORPORA[part]} is not here.")
            continue
        report[part] = measure(redactor, importlib.import_module(CORPORA[part]))
        print_corpus(part, report[part])
    report["speed"] = speed(redactor)
    print(f"\n{report['speed']['megabytes_per_s']:.1f} MB/s", report["speed"])
    if chosen.hostile:
        report["hostile"] = hostile(redactor)
        for piece, rate in report["hostile"].items():
            print(f"  {piece!r:<64}{rate:>8.2f} MB/s")
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

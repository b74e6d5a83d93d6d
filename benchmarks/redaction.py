"""Measure redaction: recall, false positives on benign lines, and speed.

The corpora are in `data/redaction-corpora.jsonl.gz`: the project's own, and five that were held
out from the rules' author. Four of those were opened later to mend what they showed; the fifth
was not, so its recall is the honest one. A secret counts as caught when less than half of it can
still be read. Speed is measured over real transcripts where there are any, and over text that is
made to be slow. With --families each family of rules is switched off in turn.

The parts `tuned`, `held-out` and `later` are generated (`redaction_cases.py`): values of any
strength after a clear name, in several notations. There a secret is caught only if nothing of it is
left.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lore.redaction.assignment_rules import FAMILIES
from lore.redaction.redactor import Redactor
from redaction_cases import PARTS, cases

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / "benchmarks" / "data" / "redaction-corpora.jsonl.gz"
TRANSCRIPTS = ROOT.parent / "shared" / "bench" / "transcripts"
CORPORA = ("own", "first", "second", "third", "fourth", "fifth")
SHORTEST_LEAK = 6
"""Fewer characters of a secret than this occur in any text by chance."""

HOSTILE_BYTES = 1_000_000
HOSTILE = (
    "token=", "API_KEY=", "password: ", '"token":"', '\\\\"token\\\\":\\\\"', '"', "'", "\\", ":",
    "eyJ", "eyJhbGciOi.", "QUJDREVGR0hJSktM", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nA1b2C3d4A1b2C3d4A1b2C3d4\n", "Private-Lines: 1\n", "://a:",
    "a:b1c2d3e4@", "Cookie: a=", " -p", "curl -u a:", "echo a | ", "Bearer ", "[secret:",
    "password is ", "Passwort ", "login('a', ", " is the password", "chpasswd ",
)  # fmt: skip
"""Beginnings that repeat without an end, and names without a value."""

VARIED = (
    "password token key secret is the for set to login bob admin api Passwort clave auth = : -p ( '"
    ' " , value -u a: fill |'
)
"""Words that form a candidate with almost any other word."""

SEED = 20261115
ROUNDS = 3
KEY = b"a key that is only for measuring"
PLAIN = "The deploy script reads its settings, builds the image and runs the tests.\n" * 40


class Line(NamedTuple):
    """A line of a corpus; a benign one has no secret."""

    corpus: str
    kind: str
    text: str
    secret: str = ""


def read_lines(corpus: str) -> list[Line]:
    """Return the lines of one corpus."""
    if corpus in PARTS:
        return [Line(corpus, *case) for case in cases(PARTS[corpus])]
    with gzip.open(ARCHIVE, "rt", encoding="utf-8", errors="surrogatepass") as stream:
        lines = [Line(**json.loads(row)) for row in stream]
    return [line for line in lines if line.corpus == corpus]


def leaks(secret: str, redacted: str) -> bool:
    """Return whether half of a secret or more can still be read."""
    size = max(SHORTEST_LEAK, len(secret) // 2)
    return any(secret[at : at + size] in redacted for at in range(len(secret) - size + 1))


def is_cut(secret: str, redacted: str) -> bool:
    """Return whether the first or the last characters of a secret can still be read."""
    value = secret.strip("'")
    return "[secret:" not in redacted or value[:4] in redacted or value[-4:] in redacted


def measure(redactor: Redactor, corpus: str) -> dict[str, Any]:
    """Return recall and the share of benign lines touched, in all and for each kind."""
    total: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    touched: Counter[str] = Counter()
    for line in read_lines(corpus):
        redacted = redactor.redact(line.text)
        if line.secret:
            total[line.kind] += 1
            is_left = is_cut if corpus in PARTS else leaks
            caught[line.kind] += not is_left(line.secret, redacted)
        else:
            lines[line.kind] += 1
            touched[line.kind] += redacted != line.text
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


def measure_families(corpus: str) -> dict[str, dict[str, float]]:
    """Return the figures of a corpus with each family of rules switched off in turn."""
    figures = {}
    for family in ("", *FAMILIES, "lines", "context"):
        result = measure(Redactor(KEY, without=(family,)), corpus)
        figures[family or "none"] = {name: result[name] for name in ("recall", "benign_touched")}
        print(
            f"  without {family or 'none':<14}recall {result['recall']:.4f}"
            f"   benign touched {result['benign_touched']:.4f}"
        )
    return figures


def texts() -> Iterator[str]:
    """Yield the lines of the transcripts, or plain text where there are none."""
    paths = sorted(TRANSCRIPTS.glob("*.gz"))
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
            yield from stream
    if not paths:
        yield from [PLAIN] * 2_000


def speed(redactor: Redactor) -> dict[str, float]:
    """Return megabytes per CPU second (best of some rounds) and the lines with a secret."""
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
    """Return megabytes per CPU second for each text that is made to be slow."""
    speeds = {}
    made = {piece: piece * (HOSTILE_BYTES // len(piece)) for piece in HOSTILE}
    for name, text in {**made, "varied words": varied()}.items():
        started = time.process_time()
        redactor.redact(text)
        speeds[name] = len(text) / 1e6 / (time.process_time() - started)
    return speeds


def varied() -> str:
    """Return text that is full of candidates and does not repeat itself."""
    chance = random.Random(SEED)
    words: list[str] = []
    while len(words) * 6 < HOSTILE_BYTES:
        drawn = "".join(chance.choices("abcXYZ019", k=chance.randrange(2, 9)))
        words.append(chance.choice(VARIED.split()) if chance.random() < 0.8 else drawn)
    return " ".join(words)


def print_corpus(name: str, result: dict[str, Any]) -> None:
    """Print the figures of one corpus, and mark the kinds that are not perfect."""
    print(f"\n{name}: {result['secret_kinds']} kinds of secrets, {result['benign_kinds']} benign")
    for kind, share in result["recall_by_kind"].items():
        print(f"  {kind:<24}{share:>8.1%}{'' if share == 1 else '   <- missed'}")
    for kind, share in result["touched_by_kind"].items():
        print(f"  {kind:<24}{share:>8.1%}{'' if share == 0 else '   <- touched'}")
    print(f"  recall {result['recall']:.4f}   benign touched {result['benign_touched']:.4f}")


def main() -> None:
    """Measure the corpora and the speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    results = ROOT / "benchmarks" / "results" / "redaction.json"
    parser.add_argument("--json", type=Path, default=results, metavar="FILE")
    parser.add_argument(
        "--part",
        choices=(*CORPORA, *PARTS),
        action="append",
        help="only this corpus; can be repeated",
    )
    parser.add_argument("--hostile", action="store_true", help="also text that is made to be slow")
    parser.add_argument(
        "--families", action="store_true", help="only: switch off one family of rules at a time"
    )
    options = parser.parse_args()
    redactor = Redactor(KEY)
    report: dict[str, Any] = {}
    for part in options.part or (*CORPORA, *PARTS):
        if options.families:
            print(f"\n{part}")
            report[part] = measure_families(part)
            continue
        report[part] = measure(redactor, part)
        print_corpus(part, report[part])
    if not options.families:
        report["speed"] = speed(redactor)
        print(f"\n{report['speed']['megabytes_per_s']:.1f} MB/s", report["speed"])
    if options.hostile:
        report["hostile"] = hostile(redactor)
        for piece, rate in report["hostile"].items():
            print(f"  {piece!r:<64}{rate:>8.2f} MB/s")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

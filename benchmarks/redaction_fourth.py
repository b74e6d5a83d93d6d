"""A fourth corpus by another hand, held out and then opened: secrets, and what is none.

Run as a script it checks the corpus itself and prints its kinds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from fourth_chat import CHAT
from fourth_cloud import CLOUD
from fourth_data import DATA
from fourth_draw import HIDDEN, MARKS, Kind, draw
from fourth_files import FILES
from fourth_keys import KEYS
from fourth_output import OUTPUT
from fourth_programs import PROGRAMS
from fourth_prose import PROSE
from fourth_source import SOURCE
from fourth_wire import WIRE

__all__ = ["benign", "secrets"]

SHORTEST = 8
"""Characters of the shortest secret: fewer are found in a line by chance."""

SECRETS: tuple[Kind, ...] = (*FILES, *CLOUD, *WIRE, *PROGRAMS, *KEYS, *CHAT)
BENIGN: tuple[Kind, ...] = (*PROSE, *SOURCE, *OUTPUT, *DATA)


def secrets(seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield a kind, a line (or lines) of it, and the secret that must not survive."""
    for kind in SECRETS:
        for line, secret in draw(kind, seed):
            yield kind.name, line, secret


def benign(seed: int) -> Iterator[tuple[str, str]]:
    """Yield a kind and a line (or lines) of it that holds nothing to hide."""
    for kind in BENIGN:
        for line, _ in draw(kind, seed):
            yield kind.name, line


def check(seed: int) -> None:
    """Fail where a line breaks what the corpus promises."""
    for name, line, secret in secrets(seed):
        assert secret in line, (name, line)
        assert len(secret) >= SHORTEST, (name, line)
        assert not MARKS & set(line), (name, line)
    for name, line in benign(seed):
        assert not MARKS & set(line), (name, line)
    for kind in (*SECRETS, *BENIGN):
        told = sum(HIDDEN in template for template in kind.templates)
        assert told == (len(kind.templates) if kind in SECRETS else 0), kind.name


def main() -> None:
    """Check the corpus and print how many lines of each kind it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    check(chosen.seed)
    counts = Counter(name for name, _, _ in secrets(chosen.seed))
    plain = Counter(name for name, _ in benign(chosen.seed))
    for name, count in (*counts.items(), *plain.items()):
        print(f"{name:<28}{count:>4}")
    print(f"{len(counts)} kinds, {counts.total()} secrets; {len(plain)} kinds, {plain.total()} not")


if __name__ == "__main__":
    main()

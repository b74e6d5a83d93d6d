"""A third corpus that the author of the redaction rules does not see: secrets, and what is none.

Run as a script it checks the corpus itself and prints its kinds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from third_chat import CHAT
from third_code import CODE
from third_data import DATA
from third_draw import Kind, draw
from third_files import FILES
from third_keys import KEYS
from third_output import OUTPUT
from third_pages import PAGES
from third_places import PLACES
from third_prose import PROSE
from third_tools import TOOLS

__all__ = ["benign", "secrets"]

SHORTEST = 8
"""Characters of the shortest secret: fewer are found in a line by chance."""

MARKS = frozenset("«»⟦⟧↵⇥")
"""Signs of a template that no line may hold."""

SECRETS: tuple[Kind, ...] = (*KEYS, *PLACES, *FILES, *TOOLS, *CHAT)
BENIGN: tuple[Kind, ...] = (*PROSE, *CODE, *OUTPUT, *DATA, *PAGES)


def secrets(seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield a kind, a line (or lines) of it, and the secret that must not survive."""
    for kind in SECRETS:
        for line, secret in draw(kind, seed):
            yield kind.name, line, secret


def benign(seed: int) -> Iterator[tuple[str, str]]:
    """Yield a kind, and a line (or lines) of it that must stay as it is."""
    for kind in BENIGN:
        for line, _ in draw(kind, seed):
            yield f"benign-{kind.name}", line


def find_faults(seed: int) -> Iterator[str]:
    """Yield what is wrong with the corpus of a seed."""
    for kind, line, secret in secrets(seed):
        if len(secret) < SHORTEST:
            yield f"{kind}: {secret!r} is no secret in {line!r}"
        if line.count(secret) != 1:
            yield f"{kind}: the secret is not once in {line!r}"
        if MARKS & set(line):
            yield f"{kind}: a slot is left in {line!r}"
    for kind, line in benign(seed):
        if MARKS & set(line):
            yield f"{kind}: a slot is left in {line!r}"


def main() -> None:
    """Check the corpus and print how many lines of each kind it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    faults = list(find_faults(chosen.seed))
    print(*faults, sep="\n")
    hidden = Counter(kind for kind, _, _ in secrets(chosen.seed))
    plain = Counter(kind for kind, _ in benign(chosen.seed))
    for kind, count in (hidden + plain).items():
        print(f"  {kind:<32}{count:>5}")
    print(
        f"{len(hidden)} kinds, {hidden.total()} secrets; {len(plain)} kinds, {plain.total()} benign"
    )
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()

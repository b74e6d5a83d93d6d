"""A corpus for redaction that was held out at first and is open now: secrets, and what is none.

Run as a script it checks the corpus itself and prints its kinds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from heldout_benign import BENIGN
from heldout_draw import Kind, draw_lines
from heldout_files import FILES
from heldout_keys import KEYS
from heldout_places import PLACES

__all__ = ["benign", "leaks", "secrets"]

EACH = 20
"""Lines of each kind, as in the project's own corpus."""

SHORTEST_TRACE = 6
"""Fewer characters of a secret than these are found in any text by chance."""

SECRETS: tuple[Kind, ...] = (*KEYS, *PLACES, *FILES)


def secrets(seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield a kind, a line (or lines) of it, and the secret that must not survive."""
    for kind in SECRETS:
        for line, secret in draw_lines(kind, seed, EACH):
            yield kind.name, line, secret


def benign(seed: int) -> Iterator[tuple[str, str]]:
    """Yield a kind, and a line (or lines) of it that must stay as it is."""
    for kind in BENIGN:
        for line, _ in draw_lines(kind, seed, EACH):
            yield kind.name, line


def leaks(secret: str, redacted: str) -> bool:
    """Tell whether half of a secret or more can still be read: a cut key is not a hidden one."""
    size = max(SHORTEST_TRACE, len(secret) // 2)
    return any(secret[at : at + size] in redacted for at in range(len(secret) - size + 1))


def find_faults(seed: int) -> list[str]:
    """Return what is wrong with the corpus of a seed."""
    hidden, plain = list(secrets(seed)), list(benign(seed))
    faults = [f"{kind}: no secret in {line!r}" for kind, line, it in hidden if it not in line]
    faults += [f"{kind}: {it!r} is no secret" for kind, _, it in hidden if len(it) < SHORTEST_TRACE]
    faults += [
        f"{kind}: a secret in {line!r}"
        for kind, line in plain
        if any(it in line for _, _, it in hidden)
    ]
    lines = Counter([line for _, line, _ in hidden] + [line for _, line in plain])
    faults += [f"{count} times: {line!r}" for line, count in lines.items() if count > 1]
    faults += [f"a slot is left in {line!r}" for line in lines if "«" in line or "»" in line]
    kinds = Counter([kind for kind, _, _ in hidden] + [f"benign {kind}" for kind, _ in plain])
    faults += [f"{kind} has {count} lines" for kind, count in kinds.items() if count != EACH]
    if hidden != list(secrets(seed)) or plain != list(benign(seed)):
        faults.append("the same seed gave other lines")
    return faults


def main() -> None:
    """Check the corpus of a seed and print its kinds, or some lines of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="lines to print of each kind")
    options = parser.parse_args()
    if faults := find_faults(options.seed):
        raise SystemExit("\n".join(faults))
    for title, kinds in (("secret", SECRETS), ("benign", BENIGN)):
        print(f"{len(kinds)} {title} kinds of {EACH} lines")
        for kind in kinds:
            print(f"  {kind.name}")
            for line, secret in islice(draw_lines(kind, options.seed, EACH), options.show):
                print(f"    {line!r}" + (f" hides {secret!r}" if secret else ""))


if __name__ == "__main__":
    main()

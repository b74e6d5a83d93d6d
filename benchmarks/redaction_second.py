"""A second corpus for redaction, held out at first and open now: secrets, and what is none.

Run as a script it checks the corpus itself and prints its kinds.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from heldout_draw import ALPHABETS, SIZE, SLOT, WORDS, Kind, draw_lines
from second_benign import BENIGN
from second_places import PLACES
from second_sessions import SESSIONS
from second_tokens import TOKENS
from second_words import NAMES

__all__ = ["benign", "secrets"]

EACH = 20
"""Lines of each kind, as in the project's other corpora."""

SHORTEST = 8
"""Characters of the shortest secret: fewer are found in a line by chance."""

SECRETS: tuple[Kind, ...] = (*TOKENS, *PLACES, *SESSIONS)


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


def find_slips() -> Iterator[str]:
    """Yield the slots that no word, alphabet or choice fills."""
    for kind in (*SECRETS, *BENIGN):
        for template in (*kind.lines, *kind.keys):
            for slot in SLOT.findall(template):
                sized = SIZE.fullmatch(slot)
                known = {*WORDS, *(NAMES if template in kind.lines else ()), "SECRET"}
                if sized and sized[1] not in {*ALPHABETS, "rows"}:
                    yield f"{kind.name}: no alphabet {slot}"
                elif not sized and slot not in known and "|" not in slot:
                    yield f"{kind.name}: no word {slot}"
        if kind.keys and any(line.count("«SECRET»") != 1 for line in kind.lines):
            yield f"{kind.name}: a line without its one secret"


def find_faults(seed: int) -> Iterator[str]:
    """Yield what is wrong with the corpus of a seed."""
    hidden, plain = list(secrets(seed)), list(benign(seed))
    for kind, line, secret in hidden:
        if secret not in line or len(secret) < SHORTEST:
            yield f"{kind}: {secret!r} is no secret of {line!r}"
    for kind, line in plain:
        if any(secret in line for _, _, secret in hidden):
            yield f"{kind}: a secret in {line!r}"
    lines = Counter([line for _, line, _ in hidden] + [line for _, line in plain])
    yield from (f"{count} times: {line!r}" for line, count in lines.items() if count > 1)
    yield from (f"a slot is left in {line!r}" for line in lines if re.search("[«»]", line))
    kinds = Counter([kind for kind, _, _ in hidden] + [f"benign {kind}" for kind, _ in plain])
    yield from (f"{kind} has {count} lines" for kind, count in kinds.items() if count != EACH)
    if hidden != list(secrets(seed)) or plain != list(benign(seed)):
        yield "the same seed gave other lines"


def main() -> None:
    """Check the corpus of a seed and print its kinds, or some lines of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="lines to print of each kind")
    options = parser.parse_args()
    if faults := [*find_slips(), *find_faults(options.seed)]:
        raise SystemExit("\n".join(faults))
    for title, kinds in (("secret", SECRETS), ("benign", BENIGN)):
        print(f"{len(kinds)} {title} kinds of {EACH} lines")
        for kind in kinds:
            print(f"  {kind.name}")
            for line, secret in islice(draw_lines(kind, options.seed, EACH), options.show):
                print(f"    {line!r}" + (f" hides {secret!r}" if secret else ""))


if __name__ == "__main__":
    main()

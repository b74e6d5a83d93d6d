"""Check what the fifth corpus promises and print its groups, its kinds, or some of its lines."""

from __future__ import annotations

import argparse
import random
from collections import Counter

from fifth.corpus import BENIGN, SECRETS, benign, read_kinds, secrets
from fifth.draw import HIDDEN, MARKS

SHORTEST = 8
"""Characters of the shortest secret: fewer are found in a line by chance."""

SEED = 5
"""The seed of what is printed; the measurement brings its own."""


def find_faults(seed: int) -> list[str]:
    """Return what is wrong with the corpus of a seed."""
    hidden, plain = list(secrets(seed)), list(benign(seed))
    faults = [f"{kind}: no secret in {line!r}" for kind, line, it in hidden if it not in line]
    faults += [f"{kind}: {it!r} is short" for kind, _, it in hidden if len(it) < SHORTEST]
    whole = "\n".join(line for _, line in plain)
    faults += [f"{kind}: {it!r} is in a benign line" for kind, _, it in hidden if it in whole]
    lines = [line for _, line, _ in hidden] + [line for _, line in plain]
    faults += [f"a sign is left in {line!r}" for line in lines if any(m in line for m in MARKS)]
    twice = Counter((line, it) for _, line, it in hidden) + Counter((line, "") for _, line in plain)
    faults += [f"{count} times: {line!r}" for (line, _), count in twice.items() if count > 1]
    if hidden != list(secrets(seed)) or plain != list(benign(seed)):
        faults.append("the same seed gave other lines")
    return faults + find_template_faults()


def find_template_faults() -> list[str]:
    """Return templates that have no secret where they should, or one where they should not."""
    faults = []
    for group in (*SECRETS, *BENIGN):
        for kind in read_kinds(group):
            wrong = [told for told in kind.templates if (HIDDEN in told) != (group in SECRETS)]
            faults += [f"{kind.name}: {told!r}" for told in wrong]
    return faults


def print_lines(seed: int, count: int) -> None:
    """Print some lines of both sorts, drawn from all of them."""
    rng = random.Random(seed)
    for kind, line, it in rng.sample(list(secrets(seed)), count):
        print(f"{kind:<24}| {line}\n{'':<24}! {it[:60]}")
    for kind, line in rng.sample(list(benign(seed)), count):
        print(f"{kind:<24}| {line}")


def main() -> None:
    """Check the corpus and print how many lines its groups and kinds have."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lines", type=int, default=0, help="print so many of each sort")
    chosen = parser.parse_args()
    if chosen.lines:
        print_lines(chosen.seed, chosen.lines)
        return
    hidden = Counter(kind for kind, _, _ in secrets(chosen.seed))
    plain = Counter(kind for kind, _ in benign(chosen.seed))
    for counts, groups in ((hidden, SECRETS), (plain, BENIGN)):
        for group in groups:
            own = [count for kind, count in counts.items() if kind.startswith(f"{group}-")]
            part = sum(own) / counts.total()
            print(f"{group:<12}{len(own):>4} kinds{sum(own):>6} lines{part:>7.1%}")
        print(f"{'':<12}{len(counts):>4} kinds{counts.total():>6} lines\n")
    faults = find_faults(chosen.seed)
    print("\n".join(faults) or "no faults")


if __name__ == "__main__":
    main()

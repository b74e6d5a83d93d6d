"""Draw the lines of the fourth corpus from templates, the same for the same seed.

A template stands on one line. `‹name argument›` is a field that is drawn anew for each line,
`‹!name argument›` the field that is the secret, `‹=›` the secret once more; `⏎` is a new line
and `⇥` a tab.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fourth_values import value

__all__ = ["HIDDEN", "MARKS", "Kind", "draw", "kinds"]

FIELD = re.compile(r"‹(=|!?)([\w.]*)(?: ([^‹›]*))?›")
HIDDEN = "‹!"
"""How the field that is the secret begins."""

MARKS = frozenset("‹⏎⇥")
"""Signs of a template that no line may hold."""

TRIES = 60
"""Draws until a line is new to its kind; after so many a line may repeat."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A name, how many lines of it there are, and the templates they are drawn from."""

    name: str
    count: int
    templates: tuple[str, ...]


def kinds(group: str, count: int, blocks: dict[str, str]) -> tuple[Kind, ...]:
    """Make the kinds of a group from blocks with one template a line."""
    return tuple(
        Kind(f"{group}-{name}", count, tuple(line for line in block.split("\n") if line))
        for name, block in blocks.items()
    )


def fill(template: str, rng: random.Random) -> tuple[str, str]:
    """Return the template with its fields drawn, and the secret among them or nothing."""
    secret = ""

    def drawn(field: re.Match[str]) -> str:
        nonlocal secret
        mark, name, arguments = field.groups()
        if mark == "=":
            return secret
        found = value(rng, name, arguments or "")
        if mark:
            secret = found
        return found

    plain = template.replace("⏎", "\n").replace("⇥", "\t")
    return FIELD.sub(drawn, plain), secret


def draw(kind: Kind, seed: int) -> Iterator[tuple[str, str]]:
    """Yield lines of a kind, its templates in turn, each with its secret or nothing."""
    rng = random.Random(f"{seed} {kind.name}")
    order = list(kind.templates)
    rng.shuffle(order)
    seen: set[str] = set()
    for turn in range(kind.count):
        for _ in range(TRIES):
            line, secret = fill(order[turn % len(order)], rng)
            if line not in seen:
                break
        seen.add(line)
        yield line, secret

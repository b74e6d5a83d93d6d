"""Draw lines from templates, the same for the same seed.

A page of templates has a heading `== name` or `== name weight` for each kind and below it one
template a line. `~{name argument}` is a field that is drawn anew for each line, `~{!name argument}`
one that is a secret, `~{=}` the last secret once more; `¶` is a new line and `¬` a tab.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fifth.values import value

__all__ = ["HEADING", "HIDDEN", "MARKS", "Kind", "Line", "draw", "read_page", "share"]

FIELD = re.compile(r"~\{(=|!?)(\w*)(?: ([^{}]*))?\}")
HEADING = "== "
"""How the first line of a kind begins."""

HIDDEN = "~{!"
"""How a field that is a secret begins."""

MARKS = ("~{", "¶", "¬")
"""Signs of a template that no line may hold."""

CONSTANT = frozenset("user svc SVC NAME PNAME VNAME db host site company noun Noun file".split())
"""Fields that have one value in a line: both ends of a change speak of the same thing."""

TRIES = 200
"""Draws until a line is new to its kind; after so many it is given up."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A name, how often it occurs beside the others of its group, and its templates."""

    name: str
    weight: int
    templates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A drawn text (one line or some) and the secrets in it."""

    text: str
    secrets: tuple[str, ...]


def read_page(group: str) -> list[Kind]:
    """Return the kinds of a group from its page of templates."""
    page = Path(__file__).with_name(f"{group}.txt").read_text("utf-8")
    kinds = []
    for block in re.split(rf"^{HEADING}", page, flags=re.MULTILINE)[1:]:
        heading, *templates = block.split("\n")
        name, _, weight = heading.partition(" ")
        told = tuple(template for template in templates if template)
        kinds.append(Kind(f"{group}-{name}", int(weight or 1), told))
    return kinds


def share(kinds: list[Kind], lines: int) -> list[tuple[Kind, int]]:
    """Return how many of a group's lines each kind has, by its weight and never none."""
    whole = sum(kind.weight for kind in kinds)
    return [(kind, max(1, round(lines * kind.weight / whole))) for kind in kinds]


def fill(template: str, rng: random.Random) -> Line:
    """Return the template with its fields drawn."""
    secrets: list[str] = []
    known: dict[str, str] = {}

    def drawn(field: re.Match[str]) -> str:
        mark, name, argument = field.groups()
        if mark == "=":
            return secrets[-1]
        found = known.get(name) or value(rng, name, argument or "")
        if name in CONSTANT:
            known[name] = found
        if mark:
            secrets.append(found)
        return found

    plain = template.replace("¶", "\n").replace("¬", "\t")
    return Line(FIELD.sub(drawn, plain), tuple(secrets))


def draw(kind: Kind, count: int, seed: int) -> Iterator[Line]:
    """Yield different lines of a kind, its templates in turn."""
    rng = random.Random(f"{seed} {kind.name}")
    order = list(kind.templates)
    rng.shuffle(order)
    seen: set[str] = set()
    turn = 0
    while len(seen) < count and turn < count * TRIES:
        line = fill(order[turn % len(order)], rng)
        turn += 1
        if line.text not in seen:
            seen.add(line.text)
            yield line

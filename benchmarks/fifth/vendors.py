"""Keys of vendors: each form in each place where such a key is met.

The page of vendors has a heading `== vendor weight NAME` and below it one form a line; a form that
begins with `?` says nothing by itself and stands only where its name is told.
"""

from __future__ import annotations

import random
from pathlib import Path

from fifth.draw import HEADING, Kind

__all__ = ["read_vendors"]

NAMED = "NAME"
KEY = "~{!KEY}"
EACH = 14
"""Places that are drawn for a form: more than any vendor has lines for one."""


def read_places() -> tuple[list[str], list[str]]:
    """Return the places that tell the name of the key, and those that do not."""
    page = Path(__file__).with_name("places.txt").read_text("utf-8").split("\n")
    lines = [line for line in page if line]
    told = [line for line in lines if NAMED in line or "~{vendor" in line]
    return told, [line for line in lines if line not in told]


def place(template: str, form: str, vendor: str, name: str) -> str:
    """Return a place with one vendor's form and name put in."""
    low = name.lower()
    camel = "".join(p if at == 0 else p.capitalize() for at, p in enumerate(low.split("_")))
    kebab = low.replace("_", "-")
    names = {NAMED: name, "name": low, "camelName": camel, "kebab-name": kebab, "vendor": vendor}
    made = template.replace(KEY, f"~{{!x {form}}}")
    for field, text in names.items():
        made = made.replace(f"~{{{field}}}", text)
    return made


def read_vendors() -> list[Kind]:
    """Return one kind for each vendor."""
    page = Path(__file__).with_name("vendors.txt").read_text("utf-8")
    told, bare = read_places()
    kinds = []
    for block in page.split(HEADING)[1:]:
        heading, *forms = block.strip().split("\n")
        vendor, weight, *names = heading.split(" ")
        rng = random.Random(vendor)
        templates = []
        for form in forms:
            places = told if form.startswith("?") else told + bare
            for chosen in rng.sample(places, EACH):
                text = place(chosen, form.lstrip("?"), vendor, rng.choice(names))
                templates.append(text)
        kinds.append(Kind(f"vendor-{vendor}", int(weight), tuple(templates)))
    return kinds

"""Names: a fragment by its title and a few figures, for who decides whether to read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from lore.records import Title
from lore.tools import wording
from lore.tools.tool import Result, Seen

COLUMNS = "id depth kind tokens children title"
"""What stands on the line of a name."""

Id = Annotated[
    str,
    Field(min_length=1, max_length=60, description="Id, or at least 8 characters of it."),
]
"""An id has 36 characters; what is a little longer is refused by who knows ids."""


class Named(Result):
    """A fragment by name."""

    id: str
    title: Seen
    kind: str
    depth: int
    tokens: int
    children: int = 0


def named(title: Title) -> Named:
    """Return a fragment by name as data."""
    return Named(
        id=title.id,
        title=title.title,
        kind=title.kind,
        depth=title.depth,
        tokens=title.tokens,
        children=title.children,
    )


def line(one: Named, short: Mapping[str, str]) -> str:
    """Return a name on one line, in the order of `COLUMNS`."""
    figures = f"{one.depth} {one.kind} {one.tokens} {one.children}"
    return f"{short[one.id]} {figures} {wording.title(one.title)}"

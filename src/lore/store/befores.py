"""Befores: how things stood before something was done by hand, so that it can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from lore.records import EdgeKind, FragmentKind, Origin
from lore.store.edges import Drawn
from lore.store.packing import unpack_json


class Whose(NamedTuple):
    """Who said a fragment, how far that is trusted, and of what kind it is."""

    origin: Origin
    trust: int
    kind: FragmentKind


@dataclass(frozen=True, slots=True)
class Words:
    """What a fragment said, and whose words they were if that changed with them."""

    content: str
    summary: str
    whose: Whose | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """The other end of an edge; the edge that was there, and the parent that a child had."""

    target: int
    kind: EdgeKind
    edge: Drawn | None = None
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Successor:
    """What took a fragment's place, and what had taken it before."""

    newer: int
    former: str | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """What an action needs to be undone: by its verb one of words, link and successor.

    What was done `together` with others goes by that name. `standing` are the messages whose
    instructions were taken out. `after` is what doing it again needs, once it was undone.
    """

    words: Words | None = None
    link: Link | None = None
    successor: Successor | None = None
    together: str = ""
    standing: tuple[int, ...] = ()
    after: Words | Drawn | None = None


NOTHING = Before()


def pack(before: Before) -> str:
    """Return what was before as the store keeps it."""
    table: dict[str, Any] = {}
    if before.words is not None:
        table |= _words_table(before.words)
    if (link := before.link) is not None:
        edge = None if link.edge is None else list(link.edge)
        table |= {"target": link.target, "kind": link.kind, "edge": edge}
        table |= {} if link.parent is None else {"parent": link.parent}
    if (successor := before.successor) is not None:
        table |= {"newer": successor.newer, "former": successor.former}
    if before.together:
        table["together"] = before.together
    if before.standing:
        table["standing"] = list(before.standing)
    if before.after is not None:
        after = before.after
        table["after"] = _words_table(after) if isinstance(after, Words) else list(after)
    return orjson.dumps(table).decode()


def unpack(kept: str) -> Before:
    """Return what `pack` was given."""
    table = unpack_json(kept)
    return Before(
        words=_words(table) if "content" in table else None,
        link=_link(table) if "target" in table else None,
        successor=Successor(table["newer"], table.get("former")) if "newer" in table else None,
        together=table.get("together", ""),
        standing=tuple(table.get("standing", ())),
        after=_after(table.get("after")),
    )


def _words_table(words: Words) -> dict[str, Any]:
    whose = {} if words.whose is None else words.whose._asdict()
    return {"content": words.content, "summary": words.summary, **whose}


def _words(table: Mapping[str, Any]) -> Words:
    whose = None
    if "origin" in table:
        whose = Whose(table["origin"], table["trust"], table["kind"])
    return Words(table["content"], table["summary"], whose)


def _link(table: Mapping[str, Any]) -> Link:
    edge = table.get("edge")
    drawn = Drawn(*edge) if edge else None
    return Link(table["target"], table["kind"], drawn, table.get("parent"))


def _after(kept: Any) -> Words | Drawn | None:
    if not kept:
        return None
    return _words(kept) if isinstance(kept, dict) else Drawn(*kept)

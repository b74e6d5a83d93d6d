"""Links to the explorer in a terminal that can show them, while a daemon serves the memory.

A terminal shows the text; a click opens the page (OSC 8). Nothing is added where stdout is not a
terminal, so pipes and programs get plain ids.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from lore.cli import invocation

if TYPE_CHECKING:
    from lore.memory import Memory

_LINK = "\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"

_PAGES = {"fragment": "fragments", "message": "messages", "session": "sessions"}


def find_explorer(memory: Memory) -> str:
    """Return the address of the explorer if ids are to link to it, or an empty text."""
    from lore.cli.terminal import shows_links
    from lore.settings import environment

    if not sys.stdout.isatty() or not shows_links(environment(invocation.environ())):
        return ""
    from lore.proxy.address import find_address

    address = find_address(str(memory.settings.home))
    return address.url if address is not None else ""


def link_ids(
    memory: Memory, short: Mapping[str, str], types: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return short ids by id, as links to their pages; `types` has those that are no fragments."""
    explorer = find_explorer(memory)
    if not explorer:
        return dict(short)
    linked = {}
    for id_, text in short.items():
        page = _PAGES.get((types or {}).get(id_, "fragment"))
        linked[id_] = link(f"{explorer}/{page}/{quote(id_, safe='')}", text) if page else text
    return linked


def link(url: str, text: str) -> str:
    """Return a text that a terminal shows as a link."""
    return _LINK.format(url=url, text=text)


_INVISIBLE = re.compile(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[[0-9;]*m")


def width(text: str) -> int:
    """Return how many characters of a text a terminal shows."""
    return len(_INVISIBLE.sub("", text)) if "\x1b" in text else len(text)


def types_of(hits: Iterable[object]) -> dict[str, str]:
    """Return the types of hits or readings by id."""
    return {str(getattr(hit, "id", "")): str(getattr(hit, "type", "")) for hit in hits}

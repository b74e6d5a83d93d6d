"""CONTINUITY.md: the working state of a project as a page that a person can read and edit.

The page is written anew after every turn. What a person changed on it is kept as it is, and becomes
part of memory only after a review. The page itself names what Lore wrote, by digests: everything
else is a person's, also if the memory has forgotten what it once wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lore.records.task_records import ContinuityEdit
from lore.text import hidden_text
from lore.text.regex import compile_lazy

FILE_NAME = "CONTINUITY.md"

MEMORIES, MISTAKES = "Relevant Memories (Auto-Retrieved)", "Mistakes to Avoid (From Learnings)"
"""Headings from the specification; their lines are ids with a few words."""

SECTIONS: dict[str, str] = {
    "task": "Current Task",
    "decisions": "Decisions",
    "progress": "Progress",
    "blockers": "Blockers",
    "next": "Next",
    "context": "Context",
    "earlier": "Left Open by Earlier Sessions",
    "memories": MEMORIES,
    "mistakes": MISTAKES,
    "outcome": "Outcome",
}
"""The sections in the order of the page."""

EDITABLE = ("task", "decisions", "progress", "blockers", "next", "memories", "mistakes")
"""Sections in which a person's edits mean something; the rest is derived."""

HEAD = """# Continuity

<!-- Written by Lore after every turn (setting tasks.continuity). Edit it as you like: Lore keeps
your lines, and 'lore continuity --read' shows them and asks before any of it is used.
Ids in brackets: 'lore read ID' or recall(query=ID) gives the memory itself. -->
"""

_ENTRY = compile_lazy(r"^\s*(?:[-*+]|\d{1,3}[.)]) +(?:\[[ xX]\] +)*(?P<text>.*\S)\s*$")
_BOXES = compile_lazy(r"^(?:\[[ xX]\] +)+(?=\S)")
_HEADING = compile_lazy(r"^## +(?P<title>.*\S)\s*$")
_MARK = compile_lazy(
    r"^<!-- lore:page session=(?P<session>[0-9a-f-]*) wrote=(?P<wrote>[0-9a-f,]*) -->$"
)
_BY_TITLE = {title.casefold(): name for name, title in SECTIONS.items()}


@dataclass(frozen=True, slots=True)
class ContinuityPage:
    """The entries of a page by section, and whatever else a person wrote on it."""

    entries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    other: tuple[str, ...] = ()
    """Lines that belong to no section of Lore's, such as a section of the person's own."""
    session: str = ""
    wrote: frozenset[str] = frozenset()
    """Digests of the entries that Lore wrote."""


def is_page(text: str) -> bool:
    """Return whether Lore wrote a page: another file of that name is not touched."""
    return any(_MARK.match(line) for line in text.splitlines()[:12])


def strip_boxes(text: str) -> str:
    """Return an entry without check boxes before it, as it is read back from a page."""
    return _BOXES.sub("", text)


def render_page(page: ContinuityPage, shown: ContinuityPage | None = None) -> str:
    """Return a page as Markdown; sections without entries are left out.

    `shown` is the page with a person's edits, if there are any.
    """
    shown = shown or page
    wrote = ",".join(_digest(name, text) for name, texts in page.entries.items() for text in texts)
    lines = [HEAD.rstrip("\n"), f"<!-- lore:page session={page.session} wrote={wrote} -->", ""]
    for name, title in SECTIONS.items():
        entries = shown.entries.get(name, ())
        if entries:
            lines += [f"## {title}", "", *(_entry_line(name, one) for one in entries), ""]
    if shown.other:
        lines += [*shown.other, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _digest(section: str, text: str) -> str:
    named = f"{section}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(named, digest_size=4).hexdigest()


def _entry_line(section: str, entry: str) -> str:
    return f"- [x] {entry}" if section == "progress" else f"- {entry}"


def parse_page(text: str) -> ContinuityPage:
    """Parse a page; lines outside of its sections are kept as they are."""
    entries: dict[str, list[str]] = {}
    other: list[str] = []
    session, wrote, section = "", "", ""
    for line in _without_head(text):
        mark, heading, entry = _MARK.match(line), _HEADING.match(line), _ENTRY.match(line)
        if mark:
            session, wrote = mark["session"], mark["wrote"]
        elif heading:
            section = _BY_TITLE.get(heading["title"].casefold(), "")
            other += [] if section else [line]
        elif section and entry:
            entries.setdefault(section, []).append(entry["text"])
        elif line.strip() or (other and not section):
            other.append(line)
    while other and not other[-1].strip():
        other.pop()
    by_section = {name: tuple(texts) for name, texts in entries.items()}
    return ContinuityPage(by_section, tuple(other), session, frozenset(wrote.split(",")) - {""})


def _without_head(text: str) -> list[str]:
    """Return the lines of a page without its title and the note below it."""
    lines = text.removeprefix("\ufeff").splitlines()
    head = HEAD.splitlines()
    return [line for line in lines if line not in head or not line.strip()]


def find_edits(current: ContinuityPage, derived: ContinuityPage) -> list[ContinuityEdit]:
    """Return what a person changed on a page, in its order.

    `derived` is the page as the stored state gives it: it has the words of what was removed.
    """
    edits: list[ContinuityEdit] = []
    for name in EDITABLE:
        there = current.entries.get(name, ())
        edits += [
            ContinuityEdit("remove", name, one)
            for one in derived.entries.get(name, ())
            if one not in there and _digest(name, one) in current.wrote
        ]
        edits += [_added(name, one) for one in there if _digest(name, one) not in current.wrote]
    return edits


def _added(section: str, text: str) -> ContinuityEdit:
    hidden = tuple(dict.fromkeys(one.what for one in hidden_text.find_hidden(text)))
    return ContinuityEdit("add", section, text, hidden)


def apply_edits(
    page: ContinuityPage, edits: Iterable[ContinuityEdit], other: Sequence[str] = ()
) -> ContinuityPage:
    """Return a page with a person's edits, and with the lines of their own."""
    entries = {name: list(texts) for name, texts in page.entries.items()}
    for edit in edits:
        texts = entries.setdefault(edit.section, [])
        if edit.verb == "remove":
            entries[edit.section] = [one for one in texts if one != edit.text]
        elif edit.text not in texts:
            texts.append(edit.text)
    lines = {name: tuple(texts) for name, texts in entries.items() if texts}
    return replace(page, entries=lines, other=tuple(other))

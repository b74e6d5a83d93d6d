"""Shared page: a Markdown file with one entry per shared fragment, for people to edit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lore.records import FragmentKind
from lore.text.regex import compile_lazy

FILE_NAME = ".lore.md"

SECTIONS: dict[FragmentKind, str] = {
    "decision": "Decisions",
    "architecture": "Architecture",
    "preference": "Preferences",
    "workflow": "Workflows",
    "config": "Configuration",
    "pattern": "Patterns",
    "anti_pattern": "What to avoid",
    "bug_fix": "Bugs and their fixes",
    "skill": "Skills",
    "fact": "Facts",
    "insight": "Insights",
}
"""The kinds that are shared, in the order of the page; episodes stay private."""

_HEAD = """# What agents know about this project

<!-- Written by 'lore share'. Change, add or remove entries as you like: 'lore share --read'
shows what changed and asks before anything of it is used. -->
"""
_MORE = """
<!-- {shown} of {total} statements are here: the most important and latest. 'lore share --all'
writes all; what is not here is still known. -->
"""
_KINDS = {
    name: kind
    for kind, title in SECTIONS.items()
    for word in (kind, kind.replace("_", " "), kind.replace("_", "-"))
    for name in (title.casefold(), word, f"{word}s", f"{word}es", f"{word}uration")
}
"""People also write the kind itself, singular or plural: 'Bug fixes', 'Facts', 'config'."""

_ENTRY = compile_lazy(r"[-*+] +(?P<text>.*)")
_ID = compile_lazy(r"(?<!\\)<!-- *lore:(?P<id>[0-9a-f-]{8,36}) *-->\s*$")
"""It does not begin with a repetition: a search for one takes time quadratic in a line's length."""

_CONFLICT = compile_lazy(r"^(?:<<<<<<<|=======$|>>>>>>>)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a page; an entry that a person added has no id yet."""

    id: str
    kind: FragmentKind
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """The entries of a page, and the lines that are no entries: (line, text)."""

    entries: tuple[Entry, ...]
    stray: tuple[tuple[int, str], ...] = ()


def render(entries: Iterable[Entry], *, total: int = 0) -> str:
    """Return the page of entries, in the given order within each section.

    If there are more than that in `total`, the page says so.
    """
    entries = list(entries)
    sections: dict[FragmentKind, list[Entry]] = {kind: [] for kind in SECTIONS}
    for entry in entries:
        sections[entry.kind].append(entry)
    pages = [_HEAD]
    if total > len(entries):
        pages.append(_MORE.format(shown=len(entries), total=total))
    for kind, title in SECTIONS.items():
        if sections[kind]:
            pages.append(f"\n## {title}\n\n" + "".join(map(_rendered, sections[kind])))
    return "".join(pages)


def _rendered(entry: Entry) -> str:
    first, *rest = _escaped(canonical(entry.text)).split("\n")
    lines = [f"- {first} <!-- lore:{entry.id} -->", *(f"  {line}".rstrip() for line in rest)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Escape comment markers in a text."""
    return text.replace("<!--", r"\<!--")


def _unescaped(text: str) -> str:
    return text.replace(r"\<!--", "<!--")


def canonical(text: str) -> str:
    """Return a text as it comes back from a page."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).strip()


def has_conflict(text: str) -> bool:
    """Return whether a page has merge conflict markers."""
    return bool(_CONFLICT.search(text))


def remove_entries(text: str, is_unwanted: Callable[[Entry], bool]) -> str:
    """Return a page without the entries, and the other lines, that are unwanted."""
    blocks: list[list[str]] = []
    in_entry = False
    for line in text.splitlines(keepends=True):
        if in_entry and line[0] in " \t" and line.strip():
            blocks[-1].append(line)
        else:
            blocks.append([line])
            in_entry = bool(_ENTRY.match(line))
    remaining = []
    for block in blocks:
        written = "".join(block)
        entries = parse(written).entries if _ENTRY.match(written) else ()
        if not any(map(is_unwanted, entries or [Entry("", "fact", written)])):
            remaining.append(written)
    return "".join(remaining)


def parse(text: str) -> Page:
    """Parse a page that people may have edited; unknown lines are reported, never an error."""
    reading = _PageParser()
    commented = False
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if commented or (line.startswith("<!--") and not _ID.fullmatch(line)):
            commented = "-->" not in line
            continue
        reading.feed(number, line.rstrip())
    return Page(tuple(reading.finish()), tuple(reading.stray))


class _PageParser:
    """A page parsed line by line."""

    def __init__(self) -> None:
        self.stray: list[tuple[int, str]] = []
        self._kind: FragmentKind = "fact"
        self._entries: list[Entry] = []
        self._id = ""
        self._lines: list[str] | None = None

    def feed(self, number: int, line: str) -> None:
        """Parse the next line."""
        if line.startswith("#"):
            self._end()
            self._kind = _KINDS.get(line.lstrip("#").strip().casefold(), "fact")
        elif entry := _ENTRY.match(line):
            self._end()
            id_match = _ID.search(entry["text"])
            self._id = id_match["id"] if id_match else ""
            self._lines = [_ID.sub("", entry["text"]).rstrip()]
        elif self._lines is not None and (not line or line[0] in " \t"):
            self._lines.append(re.sub(r"^(?:  |\t| )", "", line))
        elif self._lines is not None and self._lines[-1]:
            self._lines.append(line)
        elif line:
            self._end()
            self.stray.append((number, line))

    def finish(self) -> list[Entry]:
        """Return all entries, the last one completed."""
        self._end()
        return self._entries

    def _end(self) -> None:
        if self._lines is not None:
            text = _unescaped(canonical("\n".join(self._lines)))
            if text:
                self._entries.append(Entry(self._id, self._kind, text))
        self._lines, self._id = None, ""

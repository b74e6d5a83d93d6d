"""The page of shared knowledge: one entry per fragment, in sections by kind, for people to edit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lore.records import FragmentKind
from lore.text.later import compile_later

FILE = ".lore.md"

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
"""The kinds that are shared, in the order of the page; episodes are one person's own days."""

_HEAD = """# What agents know about this project

<!-- Written by 'lore share'. Change, add or remove entries as you like: 'lore share --read'
shows what changed and asks before anything of it is used. -->
"""
_KINDS = {
    name: kind
    for kind, title in SECTIONS.items()
    for word in (kind, kind.replace("_", " "), kind.replace("_", "-"))
    for name in (title.casefold(), word, f"{word}s", f"{word}es", f"{word}uration")
}
"""People also write the kind itself, in whatever number: 'Bug fixes', 'Facts', 'config'."""

_ENTRY = compile_later(r"[-*+] +(?P<text>.*)")
_ID = compile_later(r"\s*(?<!\\)<!-- *lore:(?P<id>[0-9a-f-]{8,36}) *-->\s*$")
_CONFLICT = compile_later(r"^(?:<<<<<<<|=======$|>>>>>>>)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a page; what a person added has no id yet."""

    id: str
    kind: FragmentKind
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """The entries of a page, and what on it is none: (line, text)."""

    entries: tuple[Entry, ...]
    stray: tuple[tuple[int, str], ...] = ()


def render(entries: Iterable[Entry]) -> str:
    """Return the page of entries, in the order given within each section."""
    sections: dict[FragmentKind, list[Entry]] = {kind: [] for kind in SECTIONS}
    for entry in entries:
        sections[entry.kind].append(entry)
    told = [_HEAD]
    for kind, title in SECTIONS.items():
        if sections[kind]:
            told.append(f"\n## {title}\n\n" + "".join(map(_rendered, sections[kind])))
    return "".join(told)


def _rendered(entry: Entry) -> str:
    first, *rest = _escaped(canonical(entry.text)).split("\n")
    lines = [f"- {first} <!-- lore:{entry.id} -->", *(f"  {line}".rstrip() for line in rest)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Keep what a text says of comments from being one."""
    return re.sub(r"\\*<!--", r"\\\g<0>", text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(\\*<!--)", r"\1", text)


def canonical(text: str) -> str:
    """Return a text as a page would give it back."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).strip()


def has_conflict(text: str) -> bool:
    """Tell whether a merge left its marks in a page."""
    return bool(_CONFLICT.search(text))


def parse(text: str) -> Page:
    """Read a page that people may have edited; what fits nowhere is told, never an error."""
    reading = _Reading()
    commented = False
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if commented or (line.startswith("<!--") and not _ID.fullmatch(line)):
            commented = "-->" not in line
            continue
        reading.take(number, line.rstrip())
    return Page(tuple(reading.ended()), tuple(reading.stray))


class _Reading:
    """A page read line by line."""

    def __init__(self) -> None:
        self.stray: list[tuple[int, str]] = []
        self._kind: FragmentKind = "fact"
        self._entries: list[Entry] = []
        self._id = ""
        self._lines: list[str] | None = None

    def take(self, number: int, line: str) -> None:
        """Take the next line for what it is."""
        if line.startswith("#"):
            self._end()
            self._kind = _KINDS.get(line.lstrip("#").strip().casefold(), "fact")
        elif found := _ENTRY.match(line):
            self._end()
            told = _ID.search(found["text"])
            self._id = told["id"] if told else ""
            self._lines = [_ID.sub("", found["text"])]
        elif self._lines is not None and (not line or line[0] in " \t"):
            self._lines.append(re.sub(r"^(?:  |\t| )", "", line))
        elif self._lines is not None and self._lines[-1]:
            self._lines.append(line)
        elif line:
            self._end()
            self.stray.append((number, line))

    def ended(self) -> list[Entry]:
        """Return all entries, the last one ended."""
        self._end()
        return self._entries

    def _end(self) -> None:
        if self._lines is not None:
            text = _unescaped(canonical("\n".join(self._lines)))
            if text:
                self._entries.append(Entry(self._id, self._kind, text))
        self._lines, self._id = None, ""

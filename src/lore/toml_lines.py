"""TOML line by line: one key changed, the rest of the file as a person wrote it."""

from __future__ import annotations

import json
import re

_HEADER = re.compile(r"^\s*\[\s*(?P<name>[^\[\]#]+?)\s*\]\s*(#.*)?$")
_LINE = re.compile(
    r"""^(?P<lead>\s*(?P<key>[^=#]+?)\s*=\s*)
    (?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\n\#]*\]|[^\s#]+)(?P<rest>\s*(?:\#.*)?)$""",
    re.VERBOSE,
)


def edited(text: str, key: str, value: str | float | tuple[str, ...] | None) -> str:
    """Return the text of a TOML file with one key replaced, added or removed."""
    shown = "" if value is None else json.dumps(value, ensure_ascii=False)
    group, _, leaf = key.partition(".")
    lines = text.splitlines()
    table = ""
    ends: dict[str, int] = {"": 0}
    for place, line in enumerate(lines):
        if header := _HEADER.match(line):
            table = bare(header["name"])
        if line.strip() and (table or not line.lstrip().startswith("#")):
            ends[table] = place + 1
        found = _LINE.match(line)
        if found and ".".join(filter(None, (table, bare(found["key"])))) == key:
            new = [] if value is None else [f"{found['lead']}{shown}{found['rest']}"]
            return _joined([*lines[:place], *new, *lines[place + 1 :]])
    if value is None:
        return text
    in_table = bool(leaf) and group in ends
    new_line = f"{leaf} = {shown}" if in_table else f"{key} = {shown}"
    place = ends[group if in_table else ""]
    if not in_table and not place:
        place = _after_opening_comment(lines)
    return _joined([*lines[:place], new_line, *lines[place:]])


def _after_opening_comment(lines: list[str]) -> int:
    """Return the place below the comment with which a file opens."""
    place = 0
    while place < len(lines) and lines[place].startswith("#"):
        place += 1
    return place if place == len(lines) or not lines[place].strip() else 0


def bare(name: str) -> str:
    """Return a TOML key without quotes and spaces: `embed . "model"` is `embed.model`."""
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)

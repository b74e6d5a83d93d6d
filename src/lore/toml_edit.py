"""Edit TOML in place: change one key or table and leave the rest as a person wrote it.

Own code, because tomlkit deletes a comment that a person wrote below a removed table, adds blank
lines, and mixes line endings; an undo must restore every byte.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from lore.errors import InvalidInput

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_LINE = re.compile(
    r"""^(?P<lead>\s*(?P<key>[^=#]+?)\s*=\s*)
    (?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\n\#]*\]|[^\s#]+)(?P<rest>\s*(?:\#.*)?)$""",
    re.VERBOSE,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a text; text that is nested too deeply counts as invalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not TOML: {error}", hint="Nothing was changed.") from error


def read(text: str, place: Sequence[str] = ()) -> Any:
    """Return the table or value at a place, or None."""
    tree: Any = parse_toml(text)
    for part in place:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def put(text: str, place: Sequence[str], value: str | Mapping[str, Any]) -> str:
    """Return the text with a table at its end, or with a value after the other top-level keys."""
    if read(text, place) == value:
        return text
    if isinstance(value, str):
        return _set_key(text, place[0], value)
    name, end = ".".join(place), _line_ending(text)
    lines = [f"[{name}]", *(f"{key} = {_written(inner)}" for key, inner in value.items())]
    return _replace_table(text, place, end.join(lines), value)


def drop(text: str, place: Sequence[str]) -> str:
    """Return the text without a top-level key, or without a table and those below it."""
    if read(text, place) is None:
        return text
    if len(place) == 1:
        return _set_key(text, place[0], None)
    after, _ = _split_table(text, ".".join(place))
    if read(after, place) is not None:
        msg = f"'{'.'.join(place)}' is written in a way that cannot be taken out."
        raise InvalidInput(msg, hint="Remove it by hand.")
    return after


def restore(text: str, place: Sequence[str], former: str) -> str:
    """Return the text with the table or value that a former text had, or without one."""
    now, then = read(text, place), read(former, place)
    if now == then:
        return text
    if isinstance(now, dict) and isinstance(then, dict):
        table = _split_table(former, ".".join(place))[1].rstrip()
        return _replace_table(text, place, table, then)
    return put(text, place, then) if isinstance(then, str) else drop(text, place)


def set_line(text: str, key: str, value: str | float | tuple[str, ...] | None) -> str:
    """Return the text of a TOML file with one key replaced, added or removed."""
    group, _, leaf = key.partition(".")
    lines = text.splitlines()
    table = ""
    ends: dict[str, int] = {"": 0}
    for place, line in enumerate(lines):
        if header := _HEADER.match(line):
            table = _unquoted(header["name"])
        if line.strip() and (table or not line.lstrip().startswith("#")):
            ends[table] = place + 1
        match = _LINE.match(line)
        if match and ".".join(filter(None, (table, _unquoted(match["key"])))) == key:
            new = [] if value is None else [f"{match['lead']}{_written(value)}{match['rest']}"]
            return _joined([*lines[:place], *new, *lines[place + 1 :]])
    if value is None:
        return text
    if leaf and group in ends:
        place, name = ends[group], leaf
    else:
        place, name = ends[""] or _after_opening_comment(lines), key
    return _joined([*lines[:place], f"{name} = {_written(value)}", *lines[place:]])


def _after_opening_comment(lines: list[str]) -> int:
    place = 0
    while place < len(lines) and lines[place].startswith("#"):
        place += 1
    return place if place == len(lines) or not lines[place].strip() else 0


def _unquoted(name: str) -> str:
    """Return a TOML key without quotes and spaces: `embed . "model"` is `embed.model`."""
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _set_key(text: str, key: str, value: str | None) -> str:
    """Return the text with a key set or removed; line endings stay."""
    plain = text.replace("\r\n", "\n")
    after = set_line(plain, key, value)
    if plain and not plain.endswith("\n"):
        after = after.removesuffix("\n")
    expected = parse_toml(text)
    expected.pop(key, None)
    if parse_toml(after) != (expected if value is None else {**expected, key: value}):
        msg = f"'{key}' is written in a way that cannot be changed."
        raise InvalidInput(msg, hint="Change it by hand.")
    return after.replace("\n", "\r\n") if "\r\n" in text else after


def _replace_table(text: str, place: Sequence[str], table: str, expected: Mapping[str, Any]) -> str:
    """Return the text with a table at its end, in place of the one at this place."""
    before, end = drop(text, place), _line_ending(text)
    if before and not before.endswith("\n"):
        before += end
    after = before + (end if before else "") + table + end
    if read(after, place) != expected:
        name = ".".join(place)
        raise InvalidInput(
            f"'{name}' cannot be written to this file.", hint=f"Write it by hand: [{name}]"
        )
    return after


def _line_ending(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _split_table(text: str, name: str) -> tuple[str, str]:
    """Return the lines outside of a table, and the lines of the table."""
    outside, table_lines, inside, head = list[str](), list[str](), False, ""
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        head += line
        if header and _is_complete(head):
            title = _unquoted(header["name"])
            was_inside, inside = inside, title == name or title.startswith(f"{name}.")
            if inside and not was_inside and outside and not outside[-1].strip():
                outside.pop()
            if was_inside and not inside:
                outside += _pop_trailing_comments(table_lines)
        (table_lines if inside else outside).append(line)
    rest = _pop_trailing_comments(table_lines) if inside else []
    return "".join([*outside, *rest]), "".join(table_lines)


def _pop_trailing_comments(table: list[str]) -> list[str]:
    """Remove blank lines and comments from the end of a table: they belong to what follows."""
    end = len(table)
    while end and (not table[end - 1].strip() or table[end - 1].lstrip().startswith("#")):
        end -= 1
    rest = table[end:]
    del table[end:]
    return rest


def _is_complete(text: str) -> bool:
    """Return whether a text ends outside of any value, so that a header is a header."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True

"""Edit TOML in place: change one key or table and leave the rest as a person wrote it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lore.errors import InvalidInput

_TABLE_HEADER = re.compile(r"^\s*\[\s*(?P<name>[^\[\]#]+?)\s*\]\s*(#.*)?$")
_LINE = re.compile(
    r"""^(?P<lead>\s*(?P<key>[^=#]+?)\s*=\s*)
    (?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\n\#]*\]|[^\s#]+)(?P<rest>\s*(?:\#.*)?)$""",
    re.VERBOSE,
)


def set_line(text: str, key: str, value: str | float | tuple[str, ...] | None) -> str:
    """Return the text of a TOML file with one key replaced, added or removed."""
    shown = "" if value is None else json.dumps(value, ensure_ascii=False)
    group, _, leaf = key.partition(".")
    lines = text.splitlines()
    table = ""
    ends: dict[str, int] = {"": 0}
    for place, line in enumerate(lines):
        if header := _TABLE_HEADER.match(line):
            table = unquoted_key(header["name"])
        if line.strip() and (table or not line.lstrip().startswith("#")):
            ends[table] = place + 1
        match = _LINE.match(line)
        if match and ".".join(filter(None, (table, unquoted_key(match["key"])))) == key:
            new = [] if value is None else [f"{match['lead']}{shown}{match['rest']}"]
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
    place = 0
    while place < len(lines) and lines[place].startswith("#"):
        place += 1
    return place if place == len(lines) or not lines[place].strip() else 0


def unquoted_key(name: str) -> str:
    """Return a TOML key without quotes and spaces: `embed . "model"` is `embed.model`."""
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_ANY_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")


def put_table(text: str, name: str, table: Mapping[str, Any]) -> str:
    """Return the text with a table of this name, at the end if it is new."""
    if find_table(text, name) == dict(table):
        return text
    lines = [f"[{name}]", *(f"{key} = {_written(value)}" for key, value in table.items())]
    return _replace_table(text, name, _line_ending(text).join(lines), dict(table))


def drop_table(text: str, name: str) -> str:
    """Return the text without the table of this name and those below it."""
    if find_table(text, name) is None:
        return text
    after, _ = _split_table(text, name)
    if find_table(after, name) is not None:
        msg = f"'{name}' is written in a way that cannot be taken out."
        raise InvalidInput(msg, hint="Remove it by hand.")
    return after


def restore_table(text: str, name: str, former: str) -> str:
    """Return the text with the table as a former text had it, or without it."""
    now, then = find_table(text, name), find_table(former, name)
    if now == then:
        return text
    if now is None or then is None:
        return drop_table(text, name)
    return _replace_table(text, name, _split_table(former, name)[1].rstrip(), then)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a text; text that is nested too deeply counts as invalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not TOML: {error}", hint="Nothing was changed.") from error


def find_table(text: str, name: str) -> Any:
    """Return the table of this name, or None."""
    tree: Any = parse_toml(text)
    for part in name.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _replace_table(text: str, name: str, table: str, expected: Mapping[str, Any]) -> str:
    """Return the text with a table at its end, in place of the one with this name."""
    before, end = drop_table(text, name), _line_ending(text)
    if before and not before.endswith("\n"):
        before += end
    after = before + (end if before else "") + table + end
    if find_table(after, name) != expected:
        msg = f"'{name}' cannot be written to this file."
        raise InvalidInput(msg, hint=f"Write it by hand: [{name}]")
    return after


def _line_ending(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _split_table(text: str, name: str) -> tuple[str, str]:
    """Return the lines outside of a table, and the lines of the table."""
    outside, table_lines, inside, read = list[str](), list[str](), False, ""
    for line in text.splitlines(keepends=True):
        header = _ANY_HEADER.match(line)
        read += line
        if header and _is_complete(read):
            title = unquoted_key(header["name"])
            was_inside, inside = inside, title == name or title.startswith(f"{name}.")
            if inside and not was_inside and outside and not outside[-1].strip():
                outside.pop()
            if was_inside and not inside:
                outside += _pop_trailing_comments(table_lines)
        (table_lines if inside else outside).append(line)
    return "".join([*outside, *(_pop_trailing_comments(table_lines) if inside else ())]), "".join(
        table_lines
    )


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


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def put_key(text: str, key: str, value: str) -> str:
    """Return the text with a value for a key, after the other keys if it is new."""
    return text if find_key(text, key) == value else _set_key(text, key, value)


def drop_key(text: str, key: str) -> str:
    """Return the text without a key."""
    return text if find_key(text, key) is None else _set_key(text, key, None)


def restore_key(text: str, key: str, former: str) -> str:
    """Return the text with the value that a former text had for a key, or without the key."""
    then = find_key(former, key)
    return put_key(text, key, then) if isinstance(then, str) else drop_key(text, key)


def find_key(text: str, key: str) -> Any:
    """Return the value of a key, or None."""
    return _parse_keys(text).get(key)


def _set_key(text: str, key: str, value: str | None) -> str:
    """Return the text with a key set or removed; line endings stay."""
    plain = text.replace("\r\n", "\n")
    after = set_line(plain, key, value)
    if plain and not plain.endswith("\n"):
        after = after.removesuffix("\n")
    expected = _parse_keys(text)
    expected.pop(key, None)
    if _parse_keys(after) != (expected if value is None else {**expected, key: value}):
        msg = f"'{key}' is written in a way that cannot be changed."
        raise InvalidInput(msg, hint="Change it by hand.")
    return after.replace("\n", "\r\n") if "\r\n" in text else after


def _parse_keys(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"This is not TOML: {error}", hint="Nothing was changed.") from error

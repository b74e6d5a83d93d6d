"""Tables of a TOML file: one put in or taken out whole, the rest left as a person wrote it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lore import toml_lines
from lore.errors import InvalidInput

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")


def put(text: str, name: str, table: Mapping[str, Any]) -> str:
    """Return the text with a table of this name, at the end if it is new."""
    if find(text, name) == dict(table):
        return text
    lines = [f"[{name}]", *(f"{key} = {_written(value)}" for key, value in table.items())]
    return _exchanged(text, name, _end(text).join(lines), dict(table))


def drop(text: str, name: str) -> str:
    """Return the text without the table of this name and those below it."""
    if find(text, name) is None:
        return text
    after, _ = _split(text, name)
    if find(after, name) is not None:
        msg = f"'{name}' is written in a way that cannot be taken out."
        raise InvalidInput(msg, hint="Remove it by hand.")
    return after


def give_back(text: str, name: str, former: str) -> str:
    """Return the text with the table that a former text had, or without it."""
    now, then = find(text, name), find(former, name)
    if now == then:
        return text
    if now is None or then is None:
        return drop(text, name)
    return _exchanged(text, name, _split(former, name)[1].rstrip(), then)


def read(text: str) -> dict[str, Any]:
    """Return what a text says; one nested too deep to be read is refused as one that is no TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not TOML: {error}", hint="Nothing was changed.") from error


def find(text: str, name: str) -> Any:
    """Return the table of this name, or None."""
    tree: Any = read(text)
    for part in name.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _exchanged(text: str, name: str, table: str, wanted: Mapping[str, Any]) -> str:
    """Return the text with a table at its end, in the place of the one of this name."""
    before, end = drop(text, name), _end(text)
    if before and not before.endswith("\n"):
        before += end
    after = before + (end if before else "") + table + end
    if find(after, name) != wanted:
        msg = f"'{name}' cannot be written to this file."
        raise InvalidInput(msg, hint=f"Write it by hand: [{name}]")
    return after


def _end(text: str) -> str:
    """Return with what the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def _split(text: str, name: str) -> tuple[str, str]:
    """Return the lines outside of a table, and those of it."""
    kept, taken, inside, read = list[str](), list[str](), False, ""
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        read += line
        if header and _is_whole(read):
            title = toml_lines.bare(header["name"])
            was_inside, inside = inside, title == name or title.startswith(f"{name}.")
            if inside and not was_inside and kept and not kept[-1].strip():
                kept.pop()
            if was_inside and not inside:
                kept += _cut_off(taken)
        (taken if inside else kept).append(line)
    return "".join([*kept, *(_cut_off(taken) if inside else ())]), "".join(taken)


def _cut_off(table: list[str]) -> list[str]:
    """Take the blank lines and notes off the end of a table: a person wrote them below it."""
    end = len(table)
    while end and (not table[end - 1].strip() or table[end - 1].lstrip().startswith("#")):
        end -= 1
    rest = table[end:]
    del table[end:]
    return rest


def _is_whole(text: str) -> bool:
    """Tell whether a text ends outside of any value: what looks like a header is one."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

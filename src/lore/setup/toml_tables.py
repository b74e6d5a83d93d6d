"""Tables of a TOML file: one put in or taken out whole, the rest left as a person wrote it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lore.errors import InvalidInput

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")


def put(text: str, name: str, table: Mapping[str, Any]) -> str:
    """Return the text with a table of this name, at the end if it is new."""
    if find(text, name) == dict(table):
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{name}]", *(f"{key} = {_written(value)}" for key, value in table.items())]
    after = _added(drop(text, name), "".join(line + end for line in lines), end)
    if find(after, name) != dict(table):
        msg = f"'{name}' cannot be added to this file."
        raise InvalidInput(msg, hint=f"Add it by hand: [{name}]")
    return after


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
    end = "\r\n" if "\r\n" in text else "\n"
    after = _added(drop(text, name), _split(former, name)[1].rstrip() + end, end)
    if find(after, name) != then:
        msg = f"'{name}' cannot be given back to this file."
        raise InvalidInput(msg, hint=f"Write it by hand: [{name}]")
    return after


def find(text: str, name: str) -> Any:
    """Return the table of this name, or None."""
    tree: Any = _parsed(text)
    for part in name.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _added(before: str, table: str, end: str) -> str:
    if before and not before.endswith("\n"):
        before += end
    return before + (end if before else "") + table


def _split(text: str, name: str) -> tuple[str, str]:
    """Return the lines outside of a table, and those of it."""
    kept, taken, inside, read = list[str](), list[str](), False, ""
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        read += line
        if header and _is_whole(read):
            title = _bare(header["name"])
            was_inside, inside = inside, title == name or title.startswith(f"{name}.")
            if inside and not was_inside and kept and not kept[-1].strip():
                kept.pop()
        (taken if inside else kept).append(line)
    return "".join(kept), "".join(taken)


def _is_whole(text: str) -> bool:
    """Tell whether a text ends outside of any value: what looks like a header is one."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"This is not TOML: {error}", hint="Nothing was changed.") from error


def _bare(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

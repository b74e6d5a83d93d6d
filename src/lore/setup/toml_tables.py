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
    if _find(_parsed(text), name) == dict(table):
        return text
    before = drop(text, name)
    end = "\r\n" if "\r\n" in text else "\n"
    if before and not before.endswith("\n"):
        before += end
    lines = [f"[{name}]", *(f"{key} = {_written(value)}" for key, value in table.items())]
    after = before + (end if before else "") + "".join(line + end for line in lines)
    if _find(_parsed(after), name) != dict(table):
        msg = f"'{name}' cannot be added to this file."
        raise InvalidInput(msg, hint=f"Add it by hand: [{name}]")
    return after


def drop(text: str, name: str) -> str:
    """Return the text without the table of this name and those below it."""
    if _find(_parsed(text), name) is None:
        return text
    kept, inside, read = list[str](), False, ""
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        read += line
        if header and _is_whole(read):
            title = _bare(header["name"])
            was_inside, inside = inside, title == name or title.startswith(f"{name}.")
            if inside and not was_inside and kept and not kept[-1].strip():
                kept.pop()
        if not inside:
            kept.append(line)
    after = "".join(kept)
    if _find(_parsed(after), name) is not None:
        msg = f"'{name}' is written in a way that cannot be taken out."
        raise InvalidInput(msg, hint="Remove it by hand.")
    return after


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


def _find(tree: Any, name: str) -> Any:
    for part in name.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _bare(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

"""Keys of a TOML file that stand in no table: one put in or taken out, the rest left as it is."""

from __future__ import annotations

import tomllib
from typing import Any

from lore import toml_lines
from lore.errors import InvalidInput


def put(text: str, key: str, value: str) -> str:
    """Return the text with this value of a key, behind the others if it is new."""
    return text if find(text, key) == value else _edited(text, key, value)


def drop(text: str, key: str) -> str:
    """Return the text without a key."""
    return text if find(text, key) is None else _edited(text, key, None)


def give_back(text: str, key: str, former: str) -> str:
    """Return the text with the value that a former text had, or without the key."""
    then = find(former, key)
    return put(text, key, then) if isinstance(then, str) else drop(text, key)


def find(text: str, key: str) -> Any:
    """Return the value of a key, or None."""
    return _parsed(text).get(key)


def _edited(text: str, key: str, value: str | None) -> str:
    """Return the text with a key as it should be; its lines end as they did."""
    plain = text.replace("\r\n", "\n")
    after = toml_lines.edited(plain, key, value)
    if plain and not plain.endswith("\n"):
        after = after.removesuffix("\n")
    wanted = _parsed(text)
    wanted.pop(key, None)
    if _parsed(after) != (wanted if value is None else {**wanted, key: value}):
        msg = f"'{key}' is written in a way that cannot be changed."
        raise InvalidInput(msg, hint="Change it by hand.")
    return after.replace("\n", "\r\n") if "\r\n" in text else after


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"This is not TOML: {error}", hint="Nothing was changed.") from error

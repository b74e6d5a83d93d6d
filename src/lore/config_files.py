"""Configuration files: TOML and JSON as flat tables of settings, read whole and written whole."""

from __future__ import annotations

import errno
import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lore.errors import InvalidInput, StoreFull, StoreReadOnly

_LARGEST_FILE = 1_000_000


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return groups as dotted keys: no setting lies deeper than one group.

    The tables of `prices`, one for each model, are texts: `[prices.m]` with `input = 3` is
    `m input=3`.
    """
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if key == "prices" and isinstance(value, Mapping):
            flat[key] = [_row(model, named) for model, named in value.items()]
            continue
        inner = value if isinstance(value, Mapping) else {"": value}
        flat |= {f"{key}.{leaf}" if leaf else key: kept for leaf, kept in inner.items()}
    return flat


def _row(model: str, named: object) -> str:
    told = named.items() if isinstance(named, Mapping) else [("", named)]
    return " ".join([model, *(f"{name}={value}" for name, value in told)])


def _read(path: Path) -> str | None:
    try:
        _refuse_endless(path)
        return path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise InvalidInput(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 text."
        raise InvalidInput(msg) from error


def _refuse_endless(path: Path) -> None:
    """Refuse a pipe or a device in place of a file: reading it would not end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        msg = f"{path} is no ordinary file."
        raise InvalidInput(msg, hint="Remove it.")
    if path.is_file() and path.stat().st_size > _LARGEST_FILE:
        msg = f"{path} is too large for a configuration file."
        raise InvalidInput(msg)


def read_toml(path: Path) -> Mapping[str, Any]:
    """Return what a TOML file holds; nothing where there is none."""
    text = _read(path)
    try:
        return tomllib.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not valid TOML: {error}"
        raise InvalidInput(msg, hint="Mend or remove the file.") from error


def read_json(path: Path) -> Mapping[str, Any]:
    """Return the object that a JSON file holds; nothing where there is none."""
    text = _read(path)
    try:
        tree = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not valid JSON: {error}"
        raise InvalidInput(msg, hint="Mend or remove the file.") from error
    if not isinstance(tree, dict):
        msg = f"{path} does not hold a JSON object."
        raise InvalidInput(msg)
    return tree


def text_of(path: Path) -> str:
    """Return the text of a file; nothing where there is none."""
    with suppress(FileNotFoundError):
        return path.read_text("utf-8")
    return ""


def write_whole(path: Path, text: str) -> None:
    """Put a text in the place of a file, all of it or nothing."""
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.touch(mode=0o600)
        part.write_text(text, "utf-8")
        part.replace(path)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}."
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (StoreFull(msg) if full else StoreReadOnly(msg)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)

"""Read and write small files safely: configuration in TOML and JSON, and the home's keys."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lore.errors import InvalidInput, StoreFull, StoreReadOnly

_LARGEST_FILE = 1_000_000


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return groups as dotted keys: no setting lies deeper than one group.

    Each table of `prices` becomes a text: `[prices.m]` with `input = 3` is `m input=3`.
    """
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if key == "prices" and isinstance(value, Mapping):
            flat[key] = [_row(model, named) for model, named in value.items()]
            continue
        inner = value if isinstance(value, Mapping) else {"": value}
        flat |= {f"{key}.{leaf}" if leaf else key: item for leaf, item in inner.items()}
    return flat


def _row(model: str, named: object) -> str:
    pairs = named.items() if isinstance(named, Mapping) else [("", named)]
    return " ".join([model, *(f"{name}={value}" for name, value in pairs)])


def read_small_file(path: Path, most: int = _LARGEST_FILE) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    A pipe, device, socket, folder or symbolic link raises `OSError` at once: reading one could
    wait forever or read another file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
    with os.fdopen(os.open(path, flags), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, "it is too large", str(path))
    return content


def _read(path: Path) -> str | None:
    try:
        _refuse_special_file(path)
        return path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text.") from error


def _refuse_special_file(path: Path) -> None:
    """Refuse a pipe or a device, which could be read forever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InvalidInput(f"{path} is no ordinary file.", hint="Remove it.")
    if path.is_file() and path.stat().st_size > _LARGEST_FILE:
        raise InvalidInput(f"{path} is too large for a configuration file.")


def read_toml(path: Path) -> Mapping[str, Any]:
    """Parse a TOML file; return nothing if it does not exist."""
    text = _read(path)
    try:
        return tomllib.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not valid TOML: {error}"
        raise InvalidInput(msg, hint="Mend or remove the file.") from error


def read_json(path: Path) -> Mapping[str, Any]:
    """Parse a JSON file that holds an object; return nothing if it does not exist."""
    text = _read(path)
    try:
        tree = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not valid JSON: {error}"
        raise InvalidInput(msg, hint="Mend or remove the file.") from error
    if not isinstance(tree, dict):
        raise InvalidInput(f"{path} does not hold a JSON object.")
    return tree


def read_text_or_empty(path: Path) -> str:
    """Return the text of a file; empty if it does not exist."""
    with suppress(FileNotFoundError):
        return path.read_text("utf-8")
    return ""


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically; only the owner can read it."""
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
            file.write(content)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents; only the owner can use them."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        missing.chmod(0o700)


def tighten_folder(folder: Path) -> bool:
    """Close a folder of this user to everybody else; return whether it was open."""
    with suppress(OSError):
        state = folder.lstat()
        if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and state.st_mode & 0o077:
            folder.chmod(0o700)
            return True
    return False


def write_atomic(path: Path, text: str) -> None:
    """Replace a configuration file atomically, and create its folder."""
    try:
        make_private_folder(path.parent)
        replace_file(path, text.encode())
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}."
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (StoreFull(msg) if full else StoreReadOnly(msg)) from error


def ensure_key(
    path: Path, *, make: Callable[[], bytes], is_sound: Callable[[bytes], bool]
) -> bytes:
    """Return the key in a file; create it if it is missing or invalid."""
    return _read_key(path, is_sound) or _make_key(path, make, is_sound)


def _read_key(path: Path, is_sound: Callable[[bytes], bool]) -> bytes:
    with suppress(FileNotFoundError):
        key = read_small_file(path)
        return key if is_sound(key) else b""
    return b""


def _make_key(path: Path, make: Callable[[], bytes], is_sound: Callable[[bytes], bool]) -> bytes:
    """Create a key file atomically; of two writers the first one wins."""
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as opened:
            os.fchmod(handle, 0o600)
            opened.write(make())
            opened.flush()
            os.fsync(handle)
        if path.exists() and not _read_key(path, is_sound):
            Path(name).replace(path)
        else:
            with suppress(FileExistsError):
                os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return read_small_file(path)

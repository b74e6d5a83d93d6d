"""The files of a `.loki` folder: read without following links, and written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from lore.errors import InvalidInput, NotFound
from lore.records import LayoutExport

_MIB_IN_ALL = 64
MOST_FILES, MOST_DEPTH = 20_000, 16
MOST_BYTES, MOST_BYTES_IN_ALL = 10_000_000, _MIB_IN_ALL * 1024 * 1024
"""A layout has thousands of small files; a larger one is something else."""


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a layout by path; raise if the folder has none."""
    if not folder.exists():
        msg = f"There is no folder {folder}."
        raise NotFound(msg)
    root = folder / ".loki" if (folder / ".loki").is_dir() else folder
    if not root.is_dir() or not any((root / name).is_dir() for name in ("memory", "metrics")):
        msg = f"{folder} has neither .loki/memory nor .loki/metrics."
        raise InvalidInput(msg, hint="Name the folder .loki, or the project that has it.")
    if root.name == ".loki" and root.is_symlink():
        _refuse_link(root)
    files: dict[str, bytes] = {}
    size = 0
    for path in _list_files(root):
        body = _read_file(path)
        size += len(body)
        if size > MOST_BYTES_IN_ALL or len(files) >= MOST_FILES:
            msg = f"{root} has more than {MOST_FILES:,} files, or more than {_MIB_IN_ALL} MiB."
            raise InvalidInput(msg, hint="Nothing was imported.")
        files[path.relative_to(root).as_posix()] = body
    return files


def _list_files(root: Path) -> Iterator[Path]:
    """Yield the files of a layout; raise at a link, which may lead out of the folder."""
    folders = [(root / top, 1) for top in ("memory", "metrics")]
    while folders:
        folder, depth = folders.pop()
        if folder.is_symlink():
            _refuse_link(folder)
        if depth > MOST_DEPTH:
            msg = f"{folder} is more than {MOST_DEPTH} folders deep."
            raise InvalidInput(msg, hint="Nothing was imported.")
        for path in sorted(_entries(folder)) if folder.is_dir() else ():
            if path.is_symlink():
                _refuse_link(path)
            if path.is_dir():
                folders.append((path, depth + 1))
            elif path.is_file():
                yield path


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        msg = f"{folder} cannot be read: {error.strerror}."
        raise InvalidInput(msg, hint="Nothing was imported.") from error


def _refuse_link(path: Path) -> NoReturn:
    msg = f"{path} is a link."
    raise InvalidInput(msg, hint="Nothing was imported: links may lead out of the folder.")


def _read_file(path: Path) -> bytes:
    try:
        # A link that took the place of the file since it was listed is not followed either.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(number, "rb") as file:  # noqa: PTH123 - of an open file
            body = file.read(MOST_BYTES + 1)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise InvalidInput(msg, hint="Nothing was imported.") from error
    if len(body) > MOST_BYTES:
        msg = f"{path} is larger than {MOST_BYTES // 1_000_000} MB."
        raise InvalidInput(msg, hint="Nothing was imported.")
    return body


def write_files(folder: Path, files: Mapping[str, bytes], *, overwrite: bool) -> LayoutExport:
    """Write the files of a layout below a folder; existing ones only with `overwrite`."""
    root = folder if folder.name == ".loki" else folder / ".loki"
    existing = [path for path in files if (root / path).exists()]
    if existing and not overwrite:
        msg = f"{root / existing[0]} exists already, and {len(existing) - 1} others."
        raise InvalidInput(msg, hint="Name another folder, or add --overwrite.")
    for path, body in files.items():
        target = root / path
        if any(part.is_symlink() for part in (target, *target.parents) if part != root.parent):
            msg = f"{target} is a link, or in a linked folder."
            raise InvalidInput(msg)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
    return LayoutExport(root, tuple(files))

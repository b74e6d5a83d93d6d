"""Where the files of a local model lie, and whether they are the right ones."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lore.embed.catalogue import TOKENIZER, WEIGHTS, Model, ModelFile
from lore.embed.whole_file import whole_file
from lore.errors import WeightsRejected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lore.settings import Settings

STAMPS = "verified.json"


def find_weights(settings: Settings, model: Model) -> Path | None:
    """Return the first folder that holds the model's files, or None."""
    for folder in _folders(settings, model):
        if all((folder / name).is_file() for name in (WEIGHTS, TOKENIZER)):
            return folder
    return None


def verify_weights(folder: Path, model: Model, stamps: Path) -> None:
    """Check the files that are used against their SHA-256, or raise `WeightsRejected`.

    The folder `stamps` remembers what was checked: a file of the same path, size and time
    of change is not read again. If nothing can be written there, every start reads anew.
    """
    known = _read_stamps(stamps / STAMPS)
    found = dict(known)
    for file in model.files:
        path = folder / file.name
        if file.name not in (WEIGHTS, TOKENIZER):
            continue
        stamp = _stamp(path, file.sha256)
        if known.get(str(path)) != stamp:
            verify_file(path, file)
            found[str(path)] = stamp
    if found != known:
        with suppress(OSError), whole_file(stamps / STAMPS) as opened:
            opened.write(json.dumps(found, indent=1).encode())


def verify_file(path: Path, file: ModelFile) -> None:
    """Raise `WeightsRejected` unless the file has the SHA-256 it must have."""
    with path.open("rb") as opened:
        actual = hashlib.file_digest(opened, "sha256").hexdigest()
    if actual != file.sha256:
        msg = f"{path} is not the expected file: its SHA-256 should be {file.sha256}."
        hint = "Remove the file, then 'lore model install' brings a sound copy."
        raise WeightsRejected(msg, hint=hint)


def _folders(settings: Settings, model: Model) -> Iterator[Path]:
    if settings.embed_model_path:
        yield Path(settings.embed_model_path).expanduser()
    yield settings.models / model.name
    spec = importlib.util.find_spec(model.module)
    for place in (spec and spec.submodule_search_locations) or ():
        yield Path(place) / "model"


def _stamp(path: Path, sha256: str) -> list[int | str]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, sha256]


def _read_stamps(path: Path) -> dict[str, list[int | str]]:
    try:
        stamps = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return stamps if isinstance(stamps, dict) else {}

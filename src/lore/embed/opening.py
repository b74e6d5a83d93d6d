"""The choice of an embedder: what can serve is decided here, once, and said so."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from lore.embed.catalogue import find_model, model_names
from lore.embed.embedder import Embedder, OpenedEmbedder
from lore.embed.local import LocalEmbedder
from lore.embed.none import NoEmbedder
from lore.embed.weights import find_weights

if TYPE_CHECKING:
    from lore.settings import Settings

_KEYWORDS_ONLY = "searching by keywords only"


def open_embedder(settings: Settings) -> OpenedEmbedder:
    """Return the embedder that the settings ask for; no model is loaded yet.

    The local one gives way to keywords alone, with a notice. One that was chosen by name
    and cannot serve is an `EmbedderError`, never a silent change to another.
    """
    if settings.embed_provider == "local":
        return _open_local(settings)
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


def _open_local(settings: Settings) -> OpenedEmbedder:
    model = find_model("local", settings.embed_model)
    if model is None:
        known = ", ".join(model_names("local"))
        return _without(
            f"There is no local model '{settings.embed_model}' (known: {known}): {_KEYWORDS_ONLY}."
        )
    for module in ("onnxruntime", "tokenizers"):
        if importlib.util.find_spec(module) is None:
            return _without(f"{module} is not installed: {_KEYWORDS_ONLY}.")
    folder = find_weights(settings, model)
    if folder is None:
        return _without(
            f"No embedding model is installed: {_KEYWORDS_ONLY}. 'lore model install' adds it."
        )
    return OpenedEmbedder(LocalEmbedder(model, folder, settings), "")


def _without(notice: str) -> OpenedEmbedder:
    return OpenedEmbedder(NoEmbedder(), notice)

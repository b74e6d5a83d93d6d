"""Embedders: from texts to vectors, on this machine or, if so chosen, elsewhere."""

from __future__ import annotations

from lore.embed.embedder import Embedder, OpenedEmbedder
from lore.embed.install import install_model
from lore.embed.opening import open_embedder
from lore.embed.silencing import silence_runtime

__all__ = ["Embedder", "OpenedEmbedder", "install_model", "open_embedder"]

silence_runtime()  # here, for whoever loads it comes by this way

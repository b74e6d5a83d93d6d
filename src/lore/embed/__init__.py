"""Embedders: from texts to vectors, on this machine or, if so chosen, elsewhere."""

from __future__ import annotations

from lore.embed.embedder import Embedder, OpenedEmbedder
from lore.embed.install import install_model
from lore.embed.opening import open_embedder

__all__ = ["Embedder", "OpenedEmbedder", "install_model", "open_embedder"]

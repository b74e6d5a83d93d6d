"""Embedders: turn texts into vectors, on this machine or with a hosted service."""

from __future__ import annotations

from lore.embed.embedder import Embedder, OpenedEmbedder, describe_source, open_embedder
from lore.embed.install import install_model
from lore.embed.runtime import disable_telemetry

__all__ = ["Embedder", "OpenedEmbedder", "describe_source", "install_model", "open_embedder"]

disable_telemetry()  # before anything can load the runtime

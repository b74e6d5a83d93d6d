"""Digesters: who reads conversations for the digest, a chat or rules of our own."""

from __future__ import annotations

from lore.llm.digester import Digester

__all__ = ["Digester"]

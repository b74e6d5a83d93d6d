"""Digesters: who reads conversations for the digest, a chat or rules of our own."""

from __future__ import annotations

from lore.llm.digester import Digester
from lore.llm.opening import OpenedDigester, open_digester

__all__ = ["Digester", "OpenedDigester", "open_digester"]

"""Gemini's generateContent."""

from lore.gateway.wires.gemini.expanding import expand
from lore.gateway.wires.gemini.reading import read
from lore.gateway.wires.gemini.replies import answer, open_reader
from lore.gateway.wires.gemini.splicing import open_splice
from lore.gateway.wires.gemini.writing import rewrite

__all__ = ["answer", "expand", "open_reader", "open_splice", "read", "rewrite"]

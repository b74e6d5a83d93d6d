"""Gemini's generateContent."""

from lore.gateway.apis.gemini.expanding import expand
from lore.gateway.apis.gemini.reading import read
from lore.gateway.apis.gemini.replies import answer, open_reader
from lore.gateway.apis.gemini.splicing import open_splice
from lore.gateway.apis.gemini.writing import rewrite

__all__ = ["answer", "expand", "open_reader", "open_splice", "read", "rewrite"]

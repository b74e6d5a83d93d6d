"""Anthropic's Messages."""

from lore.gateway.apis.anthropic.expanding import expand, mend
from lore.gateway.apis.anthropic.reading import read
from lore.gateway.apis.anthropic.replies import answer, open_reader
from lore.gateway.apis.anthropic.splicing import open_splice
from lore.gateway.apis.anthropic.writing import rewrite

__all__ = ["answer", "expand", "mend", "open_reader", "open_splice", "read", "rewrite"]

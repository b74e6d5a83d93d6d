"""Anthropic's Messages."""

from lore.gateway.wires.anthropic.expanding import expand, mend
from lore.gateway.wires.anthropic.reading import read
from lore.gateway.wires.anthropic.replies import answer, open_reader
from lore.gateway.wires.anthropic.splicing import open_splice
from lore.gateway.wires.anthropic.writing import rewrite

__all__ = ["answer", "expand", "mend", "open_reader", "open_splice", "read", "rewrite"]

"""OpenAI's Responses."""

from lore.gateway.wires.responses.expanding import expand
from lore.gateway.wires.responses.reading import read
from lore.gateway.wires.responses.replies import answer, open_reader
from lore.gateway.wires.responses.splicing import open_splice
from lore.gateway.wires.responses.writing import rewrite

__all__ = ["answer", "expand", "open_reader", "open_splice", "read", "rewrite"]

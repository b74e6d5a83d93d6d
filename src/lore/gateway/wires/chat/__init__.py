"""OpenAI's Chat Completions."""

from lore.gateway.wires.chat.expanding import expand
from lore.gateway.wires.chat.reading import read
from lore.gateway.wires.chat.replies import answer, open_reader
from lore.gateway.wires.chat.splicing import open_splice
from lore.gateway.wires.chat.writing import rewrite

__all__ = ["answer", "expand", "open_reader", "open_splice", "read", "rewrite"]

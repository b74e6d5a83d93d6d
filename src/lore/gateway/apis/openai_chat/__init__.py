"""OpenAI's Chat Completions."""

from lore.gateway.apis.openai_chat.expanding import expand
from lore.gateway.apis.openai_chat.reading import read
from lore.gateway.apis.openai_chat.replies import answer, open_reader
from lore.gateway.apis.openai_chat.splicing import open_splice
from lore.gateway.apis.openai_chat.writing import rewrite

__all__ = ["answer", "expand", "open_reader", "open_splice", "read", "rewrite"]

"""OpenAI's Responses."""

from lore.gateway.apis.openai_responses.expanding import expand
from lore.gateway.apis.openai_responses.reading import read
from lore.gateway.apis.openai_responses.replies import answer, open_reader
from lore.gateway.apis.openai_responses.splicing import open_splice
from lore.gateway.apis.openai_responses.writing import rewrite

__all__ = ["answer", "expand", "open_reader", "open_splice", "read", "rewrite"]

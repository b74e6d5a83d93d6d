"""Adapter for OpenAI's Responses API."""

from lore.gateway.apis.openai_responses.requests import (
    expand_markers,
    parse_request,
    rewrite_request,
)
from lore.gateway.apis.openai_responses.streams import answer_with_text, open_rewriter, read_reply

__all__ = [
    "answer_with_text",
    "expand_markers",
    "open_rewriter",
    "parse_request",
    "read_reply",
    "rewrite_request",
]

"""Adapter for Gemini's generateContent API."""

from lore.gateway.apis.gemini.requests import expand_markers, parse_request, rewrite_request
from lore.gateway.apis.gemini.streams import answer_with_text, open_rewriter, read_reply

__all__ = [
    "answer_with_text",
    "expand_markers",
    "open_rewriter",
    "parse_request",
    "read_reply",
    "rewrite_request",
]

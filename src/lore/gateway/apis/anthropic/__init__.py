"""Adapter for Anthropic's Messages API."""

from lore.gateway.apis.anthropic.requests import (
    expand_markers,
    parse_request,
    repair_thinking,
    rewrite_request,
)
from lore.gateway.apis.anthropic.streams import answer_with_text, open_rewriter, read_reply

__all__ = [
    "answer_with_text",
    "expand_markers",
    "open_rewriter",
    "parse_request",
    "read_reply",
    "repair_thinking",
    "rewrite_request",
]

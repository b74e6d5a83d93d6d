"""Models: which of them refuse a whole request for what the gateway would add, by their names.

A name may have its maker before it, and where it is kept; it is the last part that counts.
"""

from __future__ import annotations

import re

_WORDLESS = re.compile(r"-image|-tts")
"""Models that paint, or read aloud what they are told."""

_BARE = re.compile(r"gemma-?[1-3]|^o1-(?:mini|preview)")
"""Small open models, and the first that reasoned."""

_TOOLLESS = re.compile(r"^chatgpt-|-chat-latest|-search-(?:preview|api)|deep-research|computer-use")
"""Models that chat only, or have nothing but tools of their provider's own (OpenAI's pages)."""


def is_bare(model: str) -> bool:
    """Tell whether a model has neither instructions nor functions, and refuses both."""
    return is_wordless(model) or _BARE.search(_name(model)) is not None


def is_wordless(model: str) -> bool:
    """Tell whether a model makes pictures or speech out of all that it is told."""
    return _WORDLESS.search(_name(model)) is not None


def can_call(model: str) -> bool:
    """Tell whether a model may be offered functions."""
    return not is_bare(model) and _TOOLLESS.search(_name(model)) is None


def _name(model: str) -> str:
    return model.lower().rpartition("/")[2]

"""All prompts with their versions, and the functions that fill them."""

from __future__ import annotations

from lore.llm.prompts.renderer import Boundary, Prompt, RenderedPrompt, indent, new_boundary, render
from lore.llm.prompts.templates import CONDENSE, EXTRACT, JUDGE, OBSERVE, OVERVIEW, REFLECT

__all__ = [
    "CONDENSE",
    "EXTRACT",
    "JUDGE",
    "OBSERVE",
    "OVERVIEW",
    "PROMPTS",
    "REFLECT",
    "Boundary",
    "Prompt",
    "RenderedPrompt",
    "indent",
    "new_boundary",
    "render",
]

PROMPTS = (OBSERVE, CONDENSE, EXTRACT, OVERVIEW, REFLECT, JUDGE)

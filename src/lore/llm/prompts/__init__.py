"""All prompts of the house, each with its version, and the one way to fill them."""

from __future__ import annotations

from lore.llm.prompts.condensing import CONDENSE
from lore.llm.prompts.extracting import EXTRACT
from lore.llm.prompts.judging import JUDGE
from lore.llm.prompts.observing import OBSERVE
from lore.llm.prompts.prompt import Boundary, Prompt, Rendered, indented, new_boundary, render
from lore.llm.prompts.telling import OVERVIEW, REFLECT

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
    "Rendered",
    "indented",
    "new_boundary",
    "render",
]

PROMPTS = (OBSERVE, CONDENSE, EXTRACT, OVERVIEW, REFLECT, JUDGE)

"""A question to the memory: what every door that recalls takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lore.records import Scope
from lore.text.words import MAX_QUERY_CHARS
from lore.tools.tool import Arguments

MOST_HITS = 50
"""More hits than this nobody reads; a narrower question finds better ones."""

Words = Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
"""Words to look for, or none."""

Query = Annotated[Words, Field(min_length=1, description="What you want to know.")]


class Question(Arguments):
    """What is asked, and where to look."""

    query: Query
    scope: Scope = Field(
        "all",
        description="all; session or project: only the present one; knowledge: fragments only.",
    )
    limit: int | None = Field(None, ge=1, le=MOST_HITS, description="Most hits.")

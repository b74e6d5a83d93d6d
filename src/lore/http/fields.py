"""Fields of requests: what several endpoints take, each within bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lore.memory.cursors import LONGEST_CURSOR
from lore.memory.listing import MOST_ON_A_PAGE
from lore.tools.tool import Arguments

Name = Annotated[str, Field(max_length=4_096)]
"""A path is as long at most on Linux; ids and names of projects and sessions are shorter."""

Short = Annotated[str, Field(max_length=400)]
"""What programs call their sessions, calls, models and branches; more is no name."""

Id = Annotated[Short, Field(min_length=1)]
"""An id, or what an agent calls its session."""

Text = Annotated[str, Field(max_length=4_000_000)]
"""Half of the largest body: a message is escaped on its way."""

Limit = Annotated[int, Field(ge=1, le=MOST_ON_A_PAGE, description="Most items of a page.")]
Cursor = Annotated[str, Field(max_length=LONGEST_CURSOR, description="'next' of the page before.")]
InProject = Annotated[Name, Field(description="Path, name or id of a project; none for all.")]


class Nothing(Arguments):
    """No arguments."""

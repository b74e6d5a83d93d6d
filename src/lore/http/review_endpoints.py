"""REST endpoints of the review queue."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from lore.http.endpoint import Endpoint, Id, InProject, get_endpoint
from lore.http.read_endpoints import OfProject
from lore.memory import Memory
from lore.records import (
    Correction,
    Page,
    ReviewCounts,
    ReviewDecision,
    ReviewItem,
    ReviewKind,
)
from lore.tools.tool import Arguments, Caller


class OfReview(OfProject):
    """A page of the review queue."""

    kind: Annotated[ReviewKind | None, Field(description="Of one kind.")] = None


class ReviewScope(Arguments):
    """The review queue of a project, or of all."""

    project: InProject = ""


class Decide(Arguments):
    """A decision about an entry of the queue."""

    id: Annotated[Id, Field(description="'id' of the entry.")]
    decision: Annotated[ReviewDecision, Field(description="One of the entry's options.")]


def _queue(memory: Memory, a: OfReview, caller: Caller) -> Page[ReviewItem]:
    return memory.review.page_of_entries(
        kind=a.kind, project=a.project, limit=a.limit, cursor=a.cursor,
        reads_folders=not caller.keyed,
    )  # fmt: skip


def _counts(memory: Memory, a: ReviewScope, caller: Caller) -> ReviewCounts:
    return memory.review.counts(project=a.project, reads_folders=not caller.keyed)


def _decide(memory: Memory, a: Decide, _caller: Caller) -> Correction:
    return memory.review.decide(a.id, a.decision)


REVIEW_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    get_endpoint(
        "/review", "What waits for a person's decision.", OfReview, _queue, item=ReviewItem
    ),
    get_endpoint(
        "/review/counts", "How much waits for a decision, by kind.", ReviewScope, _counts,
        result=ReviewCounts,
    ),
    Endpoint(
        "POST", "/review/{id}", "Decide an entry of the review queue.", "admin", Decide, _decide,
        Correction, tags=("correcting",),
    ),
)  # fmt: skip
"""In the order of the documentation."""

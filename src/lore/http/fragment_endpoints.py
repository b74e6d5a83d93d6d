"""REST endpoints of one fragment: its versions, sources, relevance and links, and corrections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from anyio import CapacityLimiter
from pydantic import Field

from lore.http.endpoint import Endpoint, Id, Name, Short, Text, get_endpoint
from lore.http.read_endpoints import OfItem, Paged
from lore.memory import Memory
from lore.records import (
    MAX_ACTION_CHARS,
    AccessScope,
    Correction,
    ForgetReport,
    ForgetResult,
    LinkedFragment,
    Page,
    RelevanceCurve,
    SourceMessage,
    VersionChange,
)
from lore.tools.tool import Arguments, Caller


class PartsOfItem(Paged):
    """A page of what belongs to one item."""

    id: Annotated[Id, Field(description="Id, or at least 8 of its first characters.")]


class Update(OfItem):
    """New words for a fragment."""

    content: Annotated[Text, Field(min_length=1, description="The new text, in full.")]
    summary: Annotated[str, Field(max_length=2_000, description="One line; else derived.")] = ""
    reason: Annotated[str, Field(max_length=2_000, description="Why it is changed.")] = ""


class Supersede(OfItem):
    """What replaces a fragment: another fragment, or a new text."""

    by: Annotated[Short, Field(description="Id of the newer fragment; or give content.")] = ""
    content: Annotated[Text, Field(description="The text that replaces it; or give by.")] = ""


class OfAction(Arguments):
    """One change that was made."""

    action: Annotated[
        str, Field(min_length=1, max_length=MAX_ACTION_CHARS, description="'action' of a change.")
    ]


class Forget(Arguments):
    """What is to be deleted for good: give one of these."""

    id: Annotated[Short, Field(description="An item by its id.")] = ""
    session: Annotated[Name, Field(description="A session with all that was derived from it.")] = ""
    project: Annotated[Name, Field(description="A project with all of its sessions.")] = ""
    match: Annotated[str, Field(max_length=8_192, description="All that contains this text.")] = ""


class ForgetNow(Forget):
    """What is deleted for good, as a preview showed it."""

    digest: Annotated[Id, Field(description="'digest' of the preview.")]


def _preview(memory: Memory, a: Forget, _caller: Caller) -> ForgetReport:
    return memory.maintenance.report_forget(
        id=a.id, session=a.session, project=a.project, match=a.match
    )


def _forget(memory: Memory, a: ForgetNow, _caller: Caller) -> ForgetResult:
    return memory.maintenance.forget_reported(
        a.digest, id=a.id, session=a.session, project=a.project, match=a.match
    )


def _versions(memory: Memory, a: PartsOfItem, _caller: Caller) -> Page[VersionChange]:
    return memory.knowledge.page_of_versions(a.id, limit=a.limit, cursor=a.cursor)


def _sources(memory: Memory, a: PartsOfItem, _caller: Caller) -> Page[SourceMessage]:
    return memory.knowledge.page_of_sources(a.id, limit=a.limit, cursor=a.cursor)


def _links(memory: Memory, a: PartsOfItem, _caller: Caller) -> Page[LinkedFragment]:
    return memory.knowledge.page_of_links(a.id, limit=a.limit, cursor=a.cursor)


def _relevance(memory: Memory, a: OfItem, _caller: Caller) -> RelevanceCurve:
    return memory.knowledge.relevance(a.id)


def _update(memory: Memory, a: Update, caller: Caller) -> Correction:
    return memory.edits.update(
        a.id, a.content, summary=a.summary, reason=a.reason, origin=caller.origin
    )


def _supersede(memory: Memory, a: Supersede, caller: Caller) -> Correction:
    return memory.edits.supersede(a.id, by=a.by, content=a.content, origin=caller.origin)


def _delete(memory: Memory, a: OfItem, caller: Caller) -> Correction:
    return memory.edits.delete(a.id, origin=caller.origin)


def _approve(memory: Memory, a: OfItem, _caller: Caller) -> Correction:
    return memory.edits.approve(a.id)


def _reject(memory: Memory, a: OfItem, _caller: Caller) -> Correction:
    return memory.edits.reject(a.id)


def _undo(memory: Memory, a: OfAction, _caller: Caller) -> Correction:
    return memory.edits.undo(a.action)


def _redo(memory: Memory, a: OfAction, _caller: Caller) -> Correction:
    return memory.edits.redo(a.action)


def _correction(
    path: str,
    summary: str,
    scope: AccessScope,
    arguments: type[Any],
    run: Callable[[Memory, Any, Caller], Correction],
) -> Endpoint[Any]:
    return Endpoint("POST", path, summary, scope, arguments, run, Correction, tags=("correcting",))


FRAGMENT_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    get_endpoint(
        "/fragments/{id}/versions", "Versions of a fragment and what each changed, newest first.",
        PartsOfItem, _versions, item=VersionChange,
    ),
    get_endpoint(
        "/fragments/{id}/sources", "Messages that a fragment was derived from, with the passages.",
        PartsOfItem, _sources, item=SourceMessage,
    ),
    get_endpoint(
        "/fragments/{id}/relevance", "The forgetting curve of a fragment, 180 days ahead.",
        OfItem, _relevance, result=RelevanceCurve,
    ),
    get_endpoint(
        "/fragments/{id}/edges", "Edges of a fragment, with the fragments that they lead to.",
        PartsOfItem, _links, item=LinkedFragment,
    ),
    _correction(
        "/fragments/{id}/update", "Replace the text of a fragment.", "write", Update, _update
    ),
    _correction(
        "/fragments/{id}/supersede", "Replace a fragment by another one or by a new text.",
        "write", Supersede, _supersede,
    ),
    _correction(
        "/fragments/{id}/delete", "Hide a fragment until this is undone.", "write", OfItem, _delete
    ),
    _correction(
        "/fragments/{id}/approve", "Confirm a fragment: its rules stand, and it is trusted.",
        "admin", OfItem, _approve,
    ),
    _correction(
        "/fragments/{id}/reject", "Reject the rules in a fragment, or hide one that has none.",
        "admin", OfItem, _reject,
    ),
    _correction("/undo", "Undo a change by the id of its action.", "admin", OfAction, _undo),
    _correction("/redo", "Redo a change that was undone.", "admin", OfAction, _redo),
    Endpoint(
        "POST", "/forget/preview", "What would be deleted for good.", "admin", Forget, _preview,
        ForgetReport, tags=("correcting",), limiter=CapacityLimiter(1),
    ),
    Endpoint(
        "POST", "/forget", "Delete for good what a preview showed.", "admin", ForgetNow, _forget,
        ForgetResult, tags=("correcting",), limiter=CapacityLimiter(1),
    ),
)  # fmt: skip
"""In the order of the documentation."""

"""The tool that tells what happened around a message or a time: timeline."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lore.memory import Memory
from lore.records import ItemType, Occurrence, Origin
from lore.tools import wording
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool

TIMELINE_TOKENS = 1_500
"""Of one timeline about, as of a recall: the more happened, the less of each is told."""

_TEXT_TOKENS, _LEAST_TEXT_TOKENS, _LINE_TOKENS = 60, 12, 20
"""Of what happened at most and at least so much on a line, beside what says when and who."""


class TimelineArguments(Arguments):
    """What timeline takes."""

    anchor: str = Field(
        "now",
        min_length=1,
        max_length=100,
        description="Id of a message or fragment, or a time: 2026-05-08, 'last Tuesday', now.",
    )
    before: int = Field(5, ge=0, le=20, description="How many before it.")
    after: int = Field(5, ge=0, le=20, description="How many after it.")


class Happened(Result):
    """What was said or learned, and whether it is what was asked about."""

    id: str
    type: ItemType
    at: datetime
    what: Seen
    origin: Origin
    text: Seen
    session_id: str = ""
    session: Seen = ""
    is_anchor: bool = False


class TimelineResult(Result):
    """What happened, oldest first."""

    happened: list[Happened]


def timeline(memory: Memory, given: TimelineArguments, _caller: Caller) -> Outcome:
    """Tell what happened around a message or a time, each on one line, by session."""
    found = memory.around(given.anchor, before=given.before, after=given.after)
    result = TimelineResult(happened=[_happened(one) for one in found])
    if not found:
        return Outcome("Nothing happened around that time.", result)
    short = memory.short_ids([one.id for one in found])
    width = min(_TEXT_TOKENS, max(_LEAST_TEXT_TOKENS, TIMELINE_TOKENS // len(found) - _LINE_TOKENS))
    sheet = wording.Sheet(wording.LONGEST_TOKENS, wording.QUOTED)
    session = ""
    for one in found:
        if one.session_id != session:
            session = one.session_id
            sheet.add(f"session {session or 'none'} {wording.title(one.session)}".rstrip())
        who = wording.one_line(wording.voice(one.what, one.origin), 8)
        mark = "*" if one.is_anchor else " "
        text = wording.one_line(one.text, width)
        sheet.add(f"{mark}{short[one.id]} {one.at:%Y-%m-%d %H:%M} {who}: {text}")
    return Outcome(sheet.text(), result)


def _happened(one: Occurrence) -> Happened:
    return Happened(
        id=one.id,
        type=one.type,
        at=one.at,
        what=one.what,
        origin=one.origin,
        text=one.text,
        session_id=one.session_id,
        session=one.session,
        is_anchor=one.is_anchor,
    )


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="timeline",
        title="Timeline",
        description=(
            "Call this to see what happened around a message (an id from recall()) or a time: what"
            " was said and learned before and after it."
        ),
        arguments=TimelineArguments,
        result=TimelineResult,
        run=timeline,
    ),
)

"""Every page, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.explorer.site import Site
from tests.explorer.window import (
    NARROW,
    WIDE,
    Page,
    Visitor,
    barriers_of,
    expect,
    overflow_of,
    settle,
)

QUESTION = "Which+index+made+the+arrivals+query+fast"


class Look(NamedTuple):
    """A page: its address, and what it must show."""

    path: str | Callable[[Site], str]
    content: str


def fragment_path(site: Site) -> str:
    """Return the page of a fragment with sources."""
    page = site.call("/fragments?limit=50&kind=bug_fix")
    return f"/fragments/{page['items'][0]['id']}"


def session_path(site: Site) -> str:
    """Return the page of a session of many turns."""
    sessions = site.call("/sessions?limit=100")["items"]
    return f"/sessions/{max(sessions, key=lambda one: one['messages'])['id']}"


def live_path(site: Site) -> str:
    """Return the page of the session with costs."""
    return f"/sessions/{site.call('/sessions?query=quota')['items'][0]['id']}"


def task_path(site: Site) -> str:
    """Return the page of a finished task."""
    return f"/tasks/{site.call('/tasks?state=done')['items'][0]['id']}"


PAGES = {
    "search": Look("/", "Learned last"),
    "hits": Look(f"/?q={QUESTION}", "ix_bookings_starts_on_marina"),
    "ask": Look(f"/ask?q={QUESTION}", "See all hits"),
    "fragment": Look(fragment_path, "the words it was learned from"),
    "sessions": Look("/sessions", "Quota of the SMS gateway"),
    "session": Look(session_path, "Turn 1"),
    "session-costs": Look(live_path, "Given to the agent"),
    "review": Look("/review", "May agents rely on this?"),
    "timeline": Look("/timeline", "replaced, deleted or forgotten"),
    "cycles": Look("/timeline?view=cycles", "What it did"),
    "graph": Look("/graph", "known"),
    "tasks": Look("/tasks", "Session"),
    "tasks-tasks": Look("/tasks?view=tasks", "Fix the double SMS"),
    "tasks-episodes": Look("/tasks?view=episodes", "Fix the double SMS"),
    "tasks-lessons": Look("/tasks?view=lessons", "Errors and what resolved them"),
    "tasks-skills": Look("/tasks?view=skills", "Add a migration"),
    "tasks-handoffs": Look("/tasks?view=handoffs", "Measure it in production"),
    "tasks-ledgers": Look("/tasks?view=ledgers", "Measure the query"),
    "tasks-strategies": Look("/tasks?view=strategies", "Intervals are of 95"),
    "task": Look(task_path, "The tests pass."),
    "spend": Look("/spend", "claude-sonnet-4-5"),
    "health": Look("/health", "Indexes"),
}


def keep(page: Page, artifacts: Path | None, name: str) -> None:
    """Keep a picture of a page as an artifact."""
    if artifacts:
        page.screenshot(path=artifacts / f"{name}.png", full_page=True)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_in_every_look(visitor: Visitor, artifacts: Path | None, name: str):
    look = PAGES[name]
    path = look.path if isinstance(look.path, str) else look.path(visitor.site)
    page = visitor.open(path)
    expect(page.get_by_role("main").get_by_text(look.content).first).to_be_visible()
    settle(page)
    assert barriers_of(page) == []
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        for dark in (False, True):
            page.emulate_media(color_scheme="dark" if dark else "light")
            if dark or width == NARROW:
                assert barriers_of(page, "color-contrast") == []
            assert overflow_of(page) <= 0
            expect(page.get_by_role("main").get_by_text(look.content).first).to_be_visible()
            keep(page, artifacts, f"{name}-{'dark' if dark else 'light'}-{width}")

"""A large memory: pages show a part of it, and the rest as it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.records import Draft, NewMessage, Part
from tests.explorer.site import Site, open_memory, serving
from tests.explorer.window import Visitor, expect, overflow_of, settle
from tests.homes import make_once

FRAGMENTS, SESSIONS = 5_000, 400
MOST_NODES = 4_000
"""A page at first view; benchmarks/explorer.py measures the same at 100,000 fragments."""

PATHS = {
    "search": "/", "hits": "/?q=crane", "sessions": "/sessions", "review": "/review",
    "timeline": "/timeline", "graph": "/graph", "tasks": "/tasks?view=episodes",
}  # fmt: skip


def fill(home: Path) -> None:
    """Store many fragments in one tree, and many sessions."""
    with open_memory(home) as memory:
        now = memory.database.now()
        root = memory.store("All about cranes", depth=0)
        drafts = (
            Draft(
                f"Crane {n} lifts {n % 90} tons at berth {n % 61}",
                parent_id=root if n % 2 else "",
                origin="peer" if n % 3 == 0 else "user",
            )
            for n in range(FRAGMENTS)
        )
        memory.knowledge.store_all(drafts)
        for n in range(SESSIONS):
            said = NewMessage("user", (Part("text", f"Where is crane {n}?"),), now, "1")
            memory.capture(f"s{n}", [said], agent="codex", title=f"Crane {n}")


@pytest.fixture(scope="module")
def large_site(furnished_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve the large memory; nobody changes it."""
    del furnished_home  # it skips the tests where the explorer is not built
    with serving(make_once(tmp_path_factory, "large", fill)) as site:
        yield site


@pytest.fixture
def reader(chromium, large_site: Site) -> Iterator[Visitor]:
    """Return a visitor of the large memory."""
    one = Visitor(chromium, large_site)
    yield one
    one.check()


@pytest.mark.parametrize("name", [*PATHS, "fragment"])
def test_a_page_shows_a_part_of_a_large_memory(reader: Visitor, name: str):
    path = PATHS.get(name, "")
    if name == "fragment":
        root = reader.site.call("/retrieve", {"query": "all about cranes", "everywhere": True})
        path = f"/fragments/{root['hits'][0]['id']}"
    page = reader.open(path)
    nodes = page.evaluate("document.querySelectorAll('*').length")
    assert nodes < MOST_NODES
    assert overflow_of(page) <= 0


def test_a_list_loads_more_as_it_is_scrolled(reader: Visitor):
    page = reader.open("/sessions")
    rows = page.get_by_role("list", name="Sessions").get_by_role("listitem")
    expect(rows).to_have_count(50)
    for least in (100, 150):
        page.get_by_role("button", name="Show more").scroll_into_view_if_needed()
        expect(rows.nth(least - 1)).to_be_attached()
    settle(page)
    assert rows.count() < SESSIONS


def test_the_graph_draws_at_most_a_thousand(reader: Visitor):
    page = reader.open("/graph")
    expect(page.get_by_text("1,000 fragments of 5,001")).to_be_visible()

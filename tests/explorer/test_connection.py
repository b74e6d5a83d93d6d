"""Without a network, in two tabs, across a restart, with less than all rights, and logged out."""

from __future__ import annotations

import re

import pytest

from lore.records import AccessScope
from tests.explorer.site import Site
from tests.explorer.window import Page, Visitor, expect, settle

BROKEN = r"ERR_(INTERNET_DISCONNECTED|CONNECTION|INCOMPLETE|EMPTY|NETWORK)"
"""What Chromium says of a server that is away."""

AWAY = "The server does not respond."
LOGGED_OUT = "This browser is logged out."


def alert(page: Page, text: str) -> None:
    expect(page.get_by_role("alert").filter(has_text=text).first).to_be_visible()


def test_a_page_without_a_network_says_so_and_goes_on(visitor: Visitor):
    visitor.allowed.append(BROKEN)
    page = visitor.open("/health")
    page.context.set_offline(True)
    page.get_by_role("button", name="Check again").click()
    alert(page, AWAY)
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("table")).to_be_visible()


def test_a_correction_shows_in_another_tab(visitor: Visitor, site: Site):
    id_ = site.memory.store("The gangway is closed")
    context = visitor.context()
    one = visitor.open(f"/fragments/{id_}", context)
    other = visitor.open(f"/fragments/{id_}", context)
    listed = visitor.open("/timeline", context)
    for page in (one, other, listed):
        expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    one.get_by_role("button", name="Edit").click()
    one.get_by_role("textbox", name="Text").fill("The gangway is open")
    one.get_by_role("button", name="Save").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("The gangway is open")
    expect(listed.get_by_text("The gangway is open").first).to_be_visible()
    one.get_by_role("button", name="Delete").click()
    expect(other.get_by_text("This fragment is deleted")).to_be_visible()


def test_what_an_agent_stores_shows_at_once(visitor: Visitor, site: Site):
    page = visitor.open("/")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    site.memory.store("The fog horn sounds twice")
    expect(page.get_by_text("The fog horn sounds twice").first).to_be_visible()


def test_a_page_survives_a_restart_of_the_server(own_visitor: Visitor):
    own_visitor.allowed.append(BROKEN)
    site = own_visitor.site
    page = own_visitor.open("/timeline")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    site.stop()
    alert(page, AWAY)
    site.memory.store("Learned while the server was away")
    site.start()
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("Learned while the server was away")).to_be_visible()


def test_a_page_that_is_logged_out_says_so_and_goes_on_after_a_login(own_visitor: Visitor):
    own_visitor.allowed += [BROKEN, "401"]
    site = own_visitor.site
    page = own_visitor.open("/health")
    page.context.clear_cookies()
    page.get_by_role("button", name="Check again").click()
    alert(page, LOGGED_OUT)
    site.stop()
    site.start()
    expect(page.get_by_role("status").filter(has_text="Logged out")).to_be_visible()
    fresh = page.context.new_page()
    fresh.goto(f"{site.url}/sessions")
    expect(fresh.get_by_text("lore open", exact=True)).to_be_visible()
    fresh.goto(site.login_url("/sessions"))
    settle(fresh)
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("scopes", [["read"], ["read", "write"]])
def test_a_key_changes_no_more_than_it_may(visitor: Visitor, site: Site, scopes: list[AccessScope]):
    may_write = "write" in scopes
    key, _ = site.memory.access.create_key("guest", scopes=scopes)
    id_ = site.memory.store(f"The customs house is old ({len(scopes)})", origin="peer")
    page = visitor.open(f"/fragments/{id_}", key=key)
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    for name in ("Edit", "Replace", "Delete"):
        expect(page.get_by_role("button", name=name)).to_be_enabled(enabled=may_write)
    for name in ("Approve", "Not a rule", "Forget…"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
        button = page.get_by_role("button", name=name)
        expect(button).to_have_attribute("title", re.compile("reading only|scope 'admin'"))
    if not may_write:
        expect(page.get_by_text("Reading only")).to_be_visible()
        page.keyboard.press("d")
        page.keyboard.press("e")
        expect(page.get_by_role("textbox", name="Text")).to_have_count(0)
        page.goto(f"{site.url}/fragments/{id_}?edit=1")
        settle(page)
        expect(page.get_by_role("button", name="Edit")).to_be_disabled()
    page.goto(f"{site.url}/review?kind=untrusted")
    settle(page)
    for button in page.get_by_role("list", name="Waiting").get_by_role("button").all():
        expect(button).to_be_disabled()
    page.keyboard.press("a")
    assert site.memory.knowledge.fragment(id_).fragment
    assert not site.memory.knowledge.fragment(id_).deleted
    expect(page.get_by_text(f"The customs house is old ({len(scopes)})").first).to_be_visible()


def test_a_key_for_reading_sees_every_page(visitor: Visitor, site: Site):
    key, _ = site.memory.access.create_key("reader", scopes=["read"])
    page = visitor.open("/", key=key)
    for name in ("Ask", "Sessions", "Review", "Timeline", "Graph", "Tasks", "Spend", "Health"):
        page.get_by_role("navigation", name="Pages").get_by_role(
            "link", name=re.compile(f"^{name}")
        ).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        settle(page)
        expect(page.get_by_role("alert")).to_have_count(0)
    page.goto(f"{site.url}/?q=quota")
    expect(page.get_by_role("list", name="Results").get_by_role("link").first).to_be_visible()

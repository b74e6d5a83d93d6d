"""The explorer without a mouse."""

from __future__ import annotations

import re

import pytest

from tests.explorer.site import Site
from tests.explorer.window import Page, Visitor, expect, settle

PAGES = {
    "s": "/", "a": "/ask", "o": "/sessions", "r": "/review", "t": "/timeline", "g": "/graph",
    "k": "/tasks", "m": "/spend", "h": "/health",
}  # fmt: skip

HAS_RING = """() => {
  const element = document.activeElement;
  const style = getComputedStyle(element);
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return element === document.body || ring || style.boxShadow !== "none";
}"""


def focused(page: Page) -> str:
    name: str = page.evaluate(
        "() => document.activeElement.ariaLabel ?? document.activeElement.innerText"
    )
    return name


def test_g_and_a_letter_open_every_page(visitor: Visitor):
    page = visitor.open("/health")
    for letter, path in PAGES.items():
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page).to_have_url(visitor.site.url + path)
        settle(page)
        page.keyboard.press("Escape")  # leaves the field that a page focuses


def test_slash_goes_to_the_field_of_the_page_or_to_search(visitor: Visitor):
    page = visitor.open("/sessions")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Find a session")).to_be_focused()
    page.keyboard.type("quota/")
    expect(page.get_by_role("searchbox", name="Find a session")).to_have_value("quota/")
    page = visitor.open("/health")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search the memory")).to_be_focused()


def test_rows_are_walked_opened_and_edited_with_keys(visitor: Visitor):
    page = visitor.open("/?kind=bug_fix")
    page.keyboard.press("Escape")  # leaves the field
    rows = page.get_by_role("region", name="Learned last").get_by_role("link")
    expect(rows.nth(1)).to_be_visible()
    for key, place in (("j", 0), ("j", 1), ("k", 0), ("j", 1)):
        page.keyboard.press(key)
        expect(rows.nth(place)).to_be_focused()
        assert page.evaluate(HAS_RING)
    target = rows.nth(1).get_attribute("href")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visitor.site.url}{target}")
    page.go_back()
    settle(page)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(rows.first).to_be_focused()
    page.keyboard.press("e")
    expect(page.get_by_role("textbox", name="Text")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("textbox", name="Text")).to_have_count(0)


def test_a_fragment_is_edited_and_saved_without_a_mouse(visitor: Visitor, site: Site):
    id_ = site.memory.store("The slip is steep")
    page = visitor.open(f"/fragments/{id_}")
    page.keyboard.press("e")
    page.keyboard.press("Control+a")
    page.keyboard.type("The slip is steep and e wet")  # letters are text here
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("The slip is steep and e wet")


def test_turns_are_walked_with_n_and_p(visitor: Visitor, site: Site):
    sessions = site.call("/sessions?limit=100")["items"]
    longest = max(sessions, key=lambda one: one["messages"])["id"]
    page = visitor.open(f"/sessions/{longest}")
    for key, turn in (("n", 1), ("n", 2), ("p", 1)):
        page.keyboard.press(key)
        expect(page.get_by_role("link", name=f"Turn {turn}", exact=True)).to_be_focused()


@pytest.mark.parametrize("opened", ["keys", "palette", "forget"])
def test_a_dialog_holds_the_focus_and_gives_it_back(visitor: Visitor, site: Site, opened: str):
    id_ = site.memory.store(f"The quay has a dialog for {opened}")
    page = visitor.open(f"/fragments/{id_}")
    start = page.get_by_role("button", name="Forget…")
    start.focus()
    page.keyboard.press({"keys": "?", "palette": "Control+k", "forget": "Enter"}[opened])
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    inside = "() => document.activeElement === document.body || document.activeElement.closest('dialog') !== null"  # noqa: E501
    for key in ("Tab", "Tab", "Tab", "Tab", "Shift+Tab", "Shift+Tab", "Shift+Tab"):
        page.keyboard.press(key)
        assert page.evaluate(inside), focused(page)
        assert page.evaluate(HAS_RING) or opened == "palette", focused(page)
    if opened != "palette":
        page.keyboard.press("d")  # does not reach the page below
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(start).to_be_focused()
    assert not site.memory.knowledge.fragment(id_).deleted


def test_every_stop_of_the_tab_key_is_visible(visitor: Visitor, site: Site):
    fragment = site.call("/fragments?limit=1&kind=bug_fix")["items"][0]["id"]
    for path in ("/", "/review", f"/fragments/{fragment}"):
        page = visitor.open(path)
        page.keyboard.press("Escape")
        for _ in range(25):
            page.keyboard.press("Tab")
            assert page.evaluate(HAS_RING), f"{path}: {focused(page)}"


def test_the_first_stop_skips_to_the_content(visitor: Visitor):
    page = visitor.open("/sessions")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_the_list_of_keys_names_what_the_pages_know(visitor: Visitor):
    page = visitor.open("/health")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    for name in ("Command palette", "Undo the last change", "Next, previous turn", "Timeline"):
        expect(dialog.get_by_text(name, exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Health"))

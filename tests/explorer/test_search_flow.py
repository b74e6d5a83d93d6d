"""From a question to the exact message, and to an answer."""

from __future__ import annotations

import re

import pytest

from lore.records import NewMessage, Part
from tests.cli.conftest import Lore
from tests.explorer.site import PROJECT, Site
from tests.explorer.window import Page, Visitor, expect, settle

QUESTION = "Which index made the arrivals query fast?"


def search(page: Page, words: str) -> None:
    page.get_by_role("searchbox", name="Search the memory").fill(words)
    expect(page.get_by_role("list", name="Results")).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]q="))


def test_a_question_leads_to_the_exact_message_in_two_clicks(visitor: Visitor, site: Site):
    said = "The dredger comes on 3 March and clears berth 12 down to 4.5 m."
    now = site.memory.database.now()
    talk = [NewMessage("user", (Part("text", f"Question {n}"),), now, str(n)) for n in range(40)]
    talk.append(NewMessage("user", (Part("text", f"Hello.\n\n{said}\n\nBye."),), now, "said"))
    *_, source = site.memory.capture("dredger", talk, agent="codex", project=PROJECT)
    root = site.memory.store(
        "When the dredger clears each berth", depth=0, kind="decision", project=PROJECT
    )
    site.memory.store(
        said, parent_id=root, kind="decision", session="dredger", source_messages=[source],
        project=PROJECT,
    )  # fmt: skip
    page = visitor.open("/")
    search(page, "when does the dredger clear berth 12")
    page.get_by_label("Kind").select_option("decision")
    expect(page).to_have_url(re.compile("kind=decision"))
    hits = page.get_by_role("list", name="Results").get_by_role("link")
    expect(hits.nth(1)).to_be_visible()
    page.get_by_role("group", name="Depth").get_by_role("button", name="Concepts").click()
    expect(page).to_have_url(re.compile("depth=1"))
    expect(hits).to_have_count(1)
    hits.click()
    settle(page)
    quote = page.get_by_role("region", name="Sources").get_by_role("listitem")
    expect(quote.locator("mark")).to_have_text(said)
    quote.get_by_role("link", name="Show in its session").click()
    expect(page).to_have_url(re.compile(f"/sessions/.*message={source}"))
    message = page.locator(f"[id='message-{source}']")
    expect(message).to_be_in_viewport()
    expect(message).to_contain_text(said)


def test_filters_live_in_the_address_and_are_cleared_at_once(visitor: Visitor):
    page = visitor.open("/?q=quota&kind=decision&origin=peer")
    page.get_by_role("button", name="Clear").click()
    expect(page).to_have_url(re.compile(r"/\?q=quota$"))
    expect(page.get_by_role("list", name="Results").get_by_role("link").first).to_be_visible()
    page.get_by_label("Project").select_option(label="harbor")
    page.reload()
    settle(page)
    expect(page.get_by_label("Project").locator("option:checked")).to_have_text("harbor")


def test_a_hit_says_why_it_is_there(visitor: Visitor):
    page = visitor.open("/")
    search(page, QUESTION)
    preview = page.get_by_role("complementary", name="Preview")
    expect(preview.get_by_role("heading", name="Why it was found")).to_be_visible()
    hits = page.get_by_role("list", name="Results").get_by_role("link")
    expect(hits.first).to_contain_text("keywords #1")


def test_drilling_goes_below_a_fragment(visitor: Visitor, site: Site):
    root = site.memory.store("Everything about the crane", depth=0)
    child = site.memory.store("The crane lifts 40 tons", parent_id=root)
    page = visitor.open(f"/fragments/{root}")
    expect(page.get_by_role("region", name="Connections")).to_contain_text("more detail")
    page.get_by_role("link", name="Search below it").click()
    search(page, "crane")
    hits = page.get_by_role("list", name="Results").get_by_role("link")
    expect(hits.filter(has_text="40 tons")).to_have_attribute("href", f"/fragments/{child}")
    expect(page.get_by_role("button", name="remove this filter")).to_be_visible()


def test_an_answer_cites_what_leads_to_its_message(visitor: Visitor):
    page = visitor.open("/ask")
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    article = page.get_by_role("article")
    expect(article).to_contain_text("ix_bookings_starts_on_marina")
    expect(article).to_contain_text("quoted from the memory")
    article.get_by_role("region", name="Sources").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/sessions/|/fragments/"))
    settle(page)
    expect(page.get_by_role("main")).to_contain_text("ix_bookings_starts_on_marina")


def test_a_question_without_an_answer_says_so(visitor: Visitor):
    page = visitor.open("/ask?q=zyzzyva+quux")
    expect(page.get_by_role("article")).to_contain_text("no answer")


@pytest.mark.parametrize("target", ["review", "fragment", "session", "message"])
def test_the_address_that_lore_open_prints_leads_there(visitor: Visitor, site: Site, target: str):
    named, heading = target, "Review"
    if target != "review":
        items = site.call(f"/{target}s?limit=1" if target != "message" else "/sessions?limit=1")
        named = items["items"][0]["id"]
        if target == "message":
            page = site.call(f"/sessions/{named}/messages?limit=1")
            named = page["items"][0]["id"]
        heading = ""
    url = Lore(site.home)("open", "--print", named).works().out.strip()
    context = visitor.context(key="")
    context.clear_cookies()
    page = context.new_page()
    page.goto(url)
    settle(page)
    expected = {"message": "/sessions/.*message=", "review": "/review$"}.get(target, named)
    expect(page).to_have_url(re.compile(expected))
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)

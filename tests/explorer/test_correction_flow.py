"""Corrections by a person: each takes effect, shows, and is taken back."""

from __future__ import annotations

import re

import pytest

from tests.explorer.site import RULE, Site
from tests.explorer.window import Page, Visitor, expect, settle
from tests.waiting import eventually


def actions(page: Page, name: str) -> None:
    page.get_by_role("group", name="Correct this fragment").get_by_role("button", name=name).click()


def toast(page: Page, text: str) -> None:
    expect(page.get_by_role("status").filter(has_text=text)).to_be_visible()


def undo(page: Page) -> None:
    page.get_by_role("button", name="Undo").click()
    toast(page, "Undone")


def test_an_edit_is_a_new_version_with_its_reason(visitor: Visitor, site: Site):
    id_ = site.memory.store("The ferry leaves at nine")
    page = visitor.open(f"/fragments/{id_}")
    actions(page, "Edit")
    page.get_by_role("textbox", name="Text").fill("The ferry leaves at ten")
    page.get_by_role("textbox", name="Why").fill("winter timetable")
    page.get_by_role("button", name="Save").click()
    toast(page, "Changed")
    expect(page.get_by_role("heading", level=1)).to_have_text("The ferry leaves at ten")
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("2 versions")
    expect(history).to_contain_text("winter timetable")
    undo(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("The ferry leaves at nine")


def test_a_replacement_leads_to_the_new_text_and_marks_the_old(visitor: Visitor, site: Site):
    id_ = site.memory.store("The harbour master is Ada")
    page = visitor.open(f"/fragments/{id_}")
    actions(page, "Replace")
    page.get_by_role("textbox", name="What holds now").fill("The harbour master is Grace")
    page.keyboard.press("Control+Enter")
    toast(page, "Replaced")
    expect(page.get_by_role("heading", level=1)).to_have_text("The harbour master is Grace")
    page.goto(f"{site.url}/fragments/{id_}")
    expect(page.get_by_text("Replaced by")).to_be_visible()
    page.get_by_role("link", name="The harbour master is Grace").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The harbour master is Grace")


def test_approval_makes_knowledge_of_a_peer_trusted(visitor: Visitor, site: Site):
    id_ = site.memory.store("The lock opens at high tide", origin="peer")
    page = visitor.open(f"/fragments/{id_}")
    expect(page.get_by_text("Not trusted")).to_be_visible()
    actions(page, "Approve")
    toast(page, "Approved")
    expect(page.get_by_text("Not trusted")).to_have_count(0)
    undo(page)
    expect(page.get_by_text("Not trusted")).to_be_visible()


def test_this_is_not_a_rule_ends_a_standing_instruction(visitor: Visitor, site: Site):
    id_ = site.memory.store("Always name branches after the ticket.", kind="preference")
    standing = {hit.id for hit in site.memory.search.standing_instructions()}
    assert id_ in standing, RULE
    page = visitor.open(f"/fragments/{id_}")
    actions(page, "Not a rule")
    toast(page, "Rejected")
    assert id_ not in {hit.id for hit in site.memory.search.standing_instructions()}
    assert not site.memory.knowledge.fragment(id_).deleted
    undo(page)
    assert id_ in {hit.id for hit in site.memory.search.standing_instructions()}


def test_rejecting_knowledge_of_a_peer_hides_it(visitor: Visitor, site: Site):
    id_ = site.memory.store("The pier is made of glass", origin="peer")
    page = visitor.open(f"/fragments/{id_}")
    actions(page, "Not a rule")
    toast(page, "Rejected")
    expect(page.get_by_text("This fragment is deleted")).to_be_visible()


@pytest.mark.parametrize("way", ["button", "key"])
def test_a_deletion_is_undone(visitor: Visitor, site: Site, way: str):
    id_ = site.memory.store(f"The buoy is green ({way})")
    page = visitor.open(f"/fragments/{id_}")
    if way == "key":
        page.keyboard.press("d")
    else:
        actions(page, "Delete")
    toast(page, "Deleted")
    expect(page.get_by_text("This fragment is deleted")).to_be_visible()
    expect(page.get_by_role("button", name="Edit")).to_be_disabled()
    if way == "key":
        page.keyboard.press("u")
    else:
        undo(page)
    expect(page.get_by_text("This fragment is deleted")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit")).to_be_enabled()


def test_forgetting_shows_first_what_it_takes(visitor: Visitor, site: Site):
    id_ = site.memory.store("The code of the gate is 4711")
    page = visitor.open(f"/fragments/{id_}")
    actions(page, "Forget…")
    dialog = page.get_by_role("dialog", name="Forget")
    expect(dialog).to_contain_text("1 fragment")
    expect(dialog).to_contain_text("The code of the gate")
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).to_have_count(0)
    assert site.memory.knowledge.fragment(id_).id == id_
    actions(page, "Forget…")
    dialog.get_by_role("button", name="Forget for good").click()
    toast(page, "Forgotten for good")
    expect(page).to_have_url(re.compile("/$"))
    visitor.allowed.append("404")
    page.goto(f"{site.url}/fragments/{id_}")
    expect(page.get_by_text("There is no fragment with this id.")).to_be_visible()


def test_a_refused_change_says_why(visitor: Visitor, site: Site):
    id_ = site.memory.store("The mole is 300 m long")
    page = visitor.open(f"/fragments/{id_}")
    site.memory.maintenance.forget(id=id_)
    visitor.allowed.append("404")
    actions(page, "Delete")
    expect(page.get_by_role("status").filter(has_text="Deleted")).to_have_count(0)
    toast(page, id_[:8])
    page.reload()
    expect(page.get_by_text("There is no fragment with this id.")).to_be_visible()


def test_review_is_cleared_with_the_keyboard_alone(own_visitor: Visitor):
    # A decision may settle another pair, which the page still shows for a moment.
    own_visitor.allowed.append("404.*/review/replacement")
    page = own_visitor.open("/review")
    waiting = page.get_by_role("list", name="Waiting").get_by_role("group")
    assert count_waiting(own_visitor.site) > 40
    while waiting.count():
        text = waiting.first.inner_text()
        page.keyboard.press("a")
        expect(waiting.first.or_(page.get_by_text("Nothing waits"))).not_to_have_text(
            text, use_inner_text=True
        )
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert eventually(lambda: count_waiting(own_visitor.site) == 0)
    page.keyboard.press("u")
    expect(waiting).to_have_count(1)
    assert count_waiting(own_visitor.site) == 1


def count_waiting(site: Site) -> int:
    return sum(site.call("/review/counts")["counts"].values())


def test_a_decision_of_review_is_taken_back(visitor: Visitor, site: Site):
    site.memory.store("The dock has 12 cranes", origin="peer")
    page = visitor.open("/review?kind=untrusted")
    item = page.get_by_role("group", name="The dock has 12 cranes")
    expect(item).to_be_visible()
    page.get_by_role("listitem").filter(has=item).get_by_role("button", name="Approve").click()
    expect(item).to_have_count(0)
    undo(page)
    expect(item).to_be_visible()
    settle(page)

"""Pages that show how things hang together: graph, timeline, sessions, spend, tasks, health."""

from __future__ import annotations

import re

import pytest

from tests.explorer.site import MODEL, Site
from tests.explorer.window import NARROW, Visitor, expect, settle


def test_the_time_slider_of_the_graph_goes_back_to_when_less_was_known(visitor: Visitor):
    page = visitor.open("/graph")
    known = page.get_by_text(re.compile(r"^[\d,]+ known$"))
    now = int(known.inner_text().split()[0].replace(",", ""))
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile("at="))
    expect(known).not_to_have_text(f"{now} known")
    assert int(known.inner_text().split()[0].replace(",", "")) < now / 4
    page.keyboard.press("End")
    expect(known).to_have_text(f"{now} known")
    expect(page).not_to_have_url(re.compile("at="))


def test_the_graph_is_drawn_and_its_list_leads_to_a_fragment(visitor: Visitor):
    page = visitor.open("/graph")
    canvas = page.get_by_role("img", name=re.compile("Graph of [0-9]+ fragments"))
    colours = "(canvas) => new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"  # noqa: E501
    assert canvas.evaluate(colours) > 5
    page.get_by_role("searchbox", name="Find in the graph").fill("berth 17")
    page.get_by_role("link", name=re.compile("Berth 17 is 22 m deep")).click()
    preview = page.get_by_role("complementary", name="Preview")
    preview.get_by_role("link", name="Open").click()
    expect(page).to_have_url(re.compile("/fragments/"))
    settle(page)
    page.go_back()
    settle(page)
    canvas.focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("0")
    expect(canvas).to_be_focused()


def test_the_timeline_lists_days_and_cycles(visitor: Visitor, site: Site):
    id_ = site.memory.store("The tide table is printed in June")
    page = visitor.open("/timeline")
    entry = page.get_by_role("link", name=re.compile("The tide table is printed in June"))
    expect(entry).to_have_attribute("href", f"/fragments/{id_}")
    expect(page.get_by_role("img", name=re.compile("Learned and lost on"))).to_be_visible()
    page.get_by_role("button", name="Consolidation").click()
    expect(page.get_by_role("table").first).to_contain_text("Took")


def test_a_session_shows_turns_tokens_and_costs(visitor: Visitor, site: Site):
    path = site.call("/sessions?query=quota")["items"][0]["id"]
    page = visitor.open(f"/sessions/{path}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Quota of the SMS gateway")
    expect(page.get_by_text("sms-quota")).to_be_visible()
    beside = page.get_by_role("complementary", name="About turn 2")
    expect(beside).to_contain_text("claude-haiku-4-5")
    expect(beside).to_contain_text("in, 1.3k out")
    expect(beside).to_contain_text(re.compile(r"Cost\s*\$0\.\d+"))
    expect(beside).to_contain_text("The SMS gateway has a quota")
    expect(page.get_by_role("complementary", name="About turn 1")).to_contain_text(MODEL)
    call = page.get_by_role("group").filter(has_text="just test")
    expect(page.locator("pre").filter(has_text="just test")).to_be_hidden()
    call.get_by_text("bash").click()
    expect(page.locator("pre").filter(has_text="just test")).to_be_visible()
    expect(page.get_by_text("1 failed").first).to_be_visible()


def test_sessions_are_filtered_by_words_and_agent(visitor: Visitor):
    page = visitor.open("/sessions")
    rows = page.get_by_role("list", name="Sessions").get_by_role("link")
    assert rows.count() > 20
    page.get_by_role("searchbox", name="Find a session").fill("Quota of the SMS")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("running")
    page.get_by_role("searchbox", name="Find a session").fill("zyzzyva")
    expect(page.get_by_text("No session fits these filters.")).to_be_visible()
    page.get_by_role("searchbox", name="Find a session").fill("")
    page.get_by_label("Agent").select_option("codex")
    expect(page).to_have_url(re.compile("agent=codex"))
    expect(rows.filter(has_text="claude-code")).to_have_count(0)


def test_spend_shows_models_costs_and_what_was_cached(visitor: Visitor):
    page = visitor.open("/spend")
    table = page.get_by_role("table").first
    row = table.get_by_role("row").filter(has_text=MODEL)
    expect(row).to_contain_text("$0.0")
    expect(row.get_by_role("cell").nth(4)).to_have_text("2")
    page.get_by_role("button", name="Project").click()
    expect(page.get_by_role("table").first).to_contain_text("harbor")


def test_tasks_show_how_each_ended_and_what_it_was_given(visitor: Visitor):
    page = visitor.open("/tasks")
    page.get_by_role("button", name="Tasks", exact=True).click()
    task = page.get_by_role("group").filter(has_text="Fix the double SMS")
    task.get_by_text("Fix the double SMS").click()
    expect(task.get_by_text("The tests pass.")).to_be_visible()
    task.get_by_role("link", name="Page of this task").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fix the double SMS")
    page.goto(f"{visitor.site.url}/tasks?view=skills")
    page.get_by_role("button", name=re.compile("Add a migration", re.IGNORECASE)).click()
    dialog = page.get_by_role("dialog", name="Skill")
    expect(dialog).to_contain_text("Run it on a copy of the database.")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_health_checks_again(visitor: Visitor):
    page = visitor.open("/health")
    expect(page.get_by_text(re.compile(r"checks? (pass|of)|need attention"))).to_be_visible()
    with page.expect_response("**/health/report*") as answered:
        page.get_by_role("button", name="Check again").click()
    assert answered.value.status == 200
    expect(page.get_by_role("table")).to_contain_text("keywords")


def test_the_palette_finds_pages_commands_and_recent_fragments(visitor: Visitor, site: Site):
    id_ = site.memory.store("The beacon blinks every four seconds")
    page = visitor.open(f"/fragments/{id_}")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Command palette")
    expect(palette.get_by_role("option").first).to_contain_text("The beacon blinks")
    page.keyboard.type("spend")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/spend$"))
    page.keyboard.press("Control+k")
    page.keyboard.type("beacon blinks")
    options = palette.get_by_role("option")
    expect(options.filter(has_text="Search for")).to_be_visible()
    options.filter(has_text="The beacon blinks every").filter(has_not_text="“").click()
    expect(page).to_have_url(re.compile(id_))
    page.keyboard.press("Control+k")
    page.keyboard.type("theme: dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_narrow_window_reaches_every_page(visitor: Visitor):
    page = visitor.open("/", width=NARROW)
    bar = page.get_by_role("navigation", name="Pages")
    expect(bar.get_by_role("link", name="Graph")).to_be_hidden()
    bar.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sessions")
    bar.get_by_role("button", name="More").click()
    page.get_by_role("option", name=re.compile("^Graph")).click()
    expect(page).to_have_url(re.compile("/graph$"))


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/fragments/0123abcd", "/sessions/0123abcd"])
def test_an_address_of_nothing_says_so(visitor: Visitor, path: str):
    visitor.allowed.append("404")
    page = visitor.context().new_page()
    page.goto(visitor.site.url + path)
    expect(page.get_by_text(re.compile("There is no|not found|Not Found")).first).to_be_visible()

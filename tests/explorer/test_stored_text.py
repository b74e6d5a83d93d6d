"""Stored text is text: it runs nothing, loads nothing, and sends nobody anywhere."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.explorer.hostile_text import LINES, TEXTS, store_hostile_texts
from tests.explorer.site import Site, open_memory, serving
from tests.explorer.window import Page, Visitor, expect, settle
from tests.homes import copy_home, make_once

FOREIGN_ELEMENTS = """() => {
  const tags = new Set(["script", "iframe", "object", "embed", "style", "link", "meta", "base",
    "video", "audio", "source", "math", "marquee", "animate", "template", "portal", "img"]);
  const isForeign = (element) => tags.has(element.localName) ||
    [...element.attributes].some(({ name, value }) => name.startsWith("on") || name === "srcdoc" ||
      (/^(href|src|action|formaction|xlink:href|data)$/.test(name) &&
        !/^(https?:\\/\\/|\\/|#)/.test(value)));
  return [...document.querySelectorAll("main *, dialog *, .toasts *")].filter(isForeign)
    .map((element) => element.outerHTML.slice(0, 300));
}"""
SHOWN = """() => new Set([...document.body.textContent.matchAll(/hostile(\\d+)e/g)]
  .map((match) => match[1])).size"""
HOSTILE = len(TEXTS)


@pytest.fixture(scope="module")
def hostile_site(furnished_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a memory whose fields all hold hostile texts."""
    del furnished_home  # it skips the tests where the explorer is not built

    def make(home: Path) -> None:
        with open_memory(home) as memory:
            store_hostile_texts(memory)

    made = make_once(tmp_path_factory, "hostile", make)
    with serving(copy_home(made, tmp_path_factory.mktemp("hostile") / "home")) as site:
        yield site


@pytest.fixture
def victim(chromium, hostile_site: Site) -> Iterator[Visitor]:
    """Return a visitor of hostile pages."""
    one = Visitor(chromium, hostile_site)
    yield one
    one.check()


def scroll_to_end(page: Page) -> None:
    """Scroll until nothing more is loaded."""
    more = page.get_by_role("button", name=re.compile("^Show more|more lines$|^[0-9]+ more"))
    waits = page.get_by_text("Loading more…")
    while more.or_(waits).count():  # asked at once: one becomes the other
        for button in more.element_handles()[:1]:  # it does not wait for one that has gone
            button.evaluate("(button) => button.click()")
        page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
        expect(waits).to_have_count(0)
    settle(page)


def check_harmless(page: Page) -> None:
    assert page.evaluate("window.fired") is None
    assert page.evaluate(FOREIGN_ELEMENTS) == []
    assert not page.url.startswith("http://evil")


def fragment_path(site: Site) -> str:
    """Return the page of the fragment that is linked with all others."""
    found = site.call("/retrieve", {"query": "hostile0e", "kind": "decision", "everywhere": True})
    return f"/fragments/{found['hits'][0]['id']}"


def session_path(site: Site) -> str:
    """Return the page of the session with all texts."""
    sessions = site.call("/sessions?query=Hostile&limit=500")["items"]
    return f"/sessions/{next(one['id'] for one in sessions if one['external_id'] == 'hostile')}"


def task_path(site: Site) -> str:
    """Return the page of a task."""
    return f"/tasks/{site.call('/tasks?state=done')['items'][0]['id']}"


PAGES: dict[str, tuple[str | Callable[[Site], str], int]] = {
    "search": ("/", HOSTILE),
    "fragments": ("/?kind=decision", HOSTILE),
    "hits": (f"/?q={quote(' '.join(f'hostile{n}e' for n in range(30)))}", 20),
    "ask": (f"/ask?q={quote('hostile7e hostile8e hostile9e')}", 3),
    "fragment": (fragment_path, HOSTILE),
    "sessions": ("/sessions", HOSTILE),
    "session": (session_path, HOSTILE),
    "review": ("/review", 200),
    "timeline": ("/timeline", HOSTILE),
    "graph": ("/graph", 200),
    "tasks": ("/tasks", 1),
    "tasks-tasks": ("/tasks?view=tasks", HOSTILE),
    "tasks-episodes": ("/tasks?view=episodes", HOSTILE),
    "tasks-lessons": ("/tasks?view=lessons", 13),
    "tasks-skills": ("/tasks?view=skills", 13),
    "tasks-handoffs": ("/tasks?view=handoffs", HOSTILE),
    "tasks-ledgers": ("/tasks?view=ledgers", 300),
    "task": (task_path, 10),
    "spend": ("/spend", 50),
    "health": ("/health", 0),
}


def test_there_are_enough_hostile_texts():
    assert len(set(TEXTS)) >= 300


@pytest.mark.parametrize("name", PAGES)
def test_no_page_runs_what_is_stored(victim: Visitor, name: str):
    place, least = PAGES[name]
    page = victim.open(place if isinstance(place, str) else place(victim.site))
    scroll_to_end(page)
    for summary in page.locator("main summary").all()[:20]:
        summary.evaluate("(one) => one.click()")
    settle(page)
    shown = page.evaluate(SHOWN)
    assert shown >= least, f"{shown} texts are shown"
    check_harmless(page)


def test_dialogs_and_previews_run_nothing(victim: Visitor):
    page = victim.open(fragment_path(victim.site))
    page.get_by_role("button", name="Forget…").click()
    expect(page.get_by_role("dialog")).to_contain_text("hostile")
    check_harmless(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit").click()
    check_harmless(page)
    page.get_by_role("button", name="Cancel").click()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_contain_text("hostile")
    check_harmless(page)
    page.goto(f"{victim.site.url}/tasks?view=skills")
    page.get_by_role("button", name=re.compile("hostile")).first.click()
    expect(page.get_by_role("dialog", name="Skill")).to_contain_text("hostile")
    check_harmless(page)
    page.goto(f"{victim.site.url}/graph")
    page.get_by_role("link", name=re.compile("hostile")).first.click()
    expect(page.get_by_role("complementary", name="Preview")).to_contain_text("hostile")
    check_harmless(page)


def test_an_address_runs_nothing(victim: Visitor):
    page = victim.open("/")
    for line in LINES[::30]:
        for path in ("/?q=", "/ask?q=", "/sessions?agent="):
            # As a link would: a load of the page for each would take long.
            page.evaluate(
                "(to) => { history.pushState(0, '', to); dispatchEvent(new Event('popstate')); }",
                path + quote(line),
            )
            settle(page)
    victim.allowed.append("40[04]|422")
    check_harmless(page)


class _Attacker(BaseHTTPRequestHandler):
    """A page of another server on this machine: cookies do not tell ports apart."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>Elsewhere</title><p>Hello</p>")

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def attacker() -> Iterator[str]:
    """Serve a page of a foreign origin and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Attacker)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_foreign_page_changes_and_reads_nothing(visitor: Visitor, site: Site, attacker: str):
    id_ = site.memory.store("The vault is below the pier")
    visitor.allowed += ["^request: " + attacker, "403", "CORS", "ERR_FAILED", "favicon"]
    context = visitor.context()
    page = context.new_page()
    statuses: list[int] = []
    page.on("response", lambda one: statuses.append(one.status) if site.url in one.url else None)
    page.goto(attacker)
    attempt = """async ({ url, type, mode }) => {
      try {
        const reply = await fetch(url, { method: "POST", mode, credentials: "include",
          headers: { "content-type": type }, body: "{}" });
        return mode === "no-cors" ? "" : await reply.text();
      } catch { return ""; }
    }"""
    url = f"{site.url}/api/v1/fragments/{id_}/delete"
    for type_ in ("text/plain", "application/json"):
        for mode in ("cors", "no-cors"):
            assert page.evaluate(attempt, {"url": url, "type": type_, "mode": mode}) == ""
    read = """async (url) => { try { return await (await fetch(url, { credentials: "include" }))
      .text(); } catch { return ""; } }"""
    assert page.evaluate(read, f"{site.url}/api/v1/fragments/{id_}") == ""
    page.evaluate(
        """(url) => { const form = document.createElement("form"); form.method = "post";
        form.action = url; form.enctype = "text/plain"; document.body.append(form);
        form.submit(); }""",
        url,
    )
    page.wait_for_url(f"{site.url}/**")
    assert statuses
    assert set(statuses) <= {403}
    assert not site.memory.knowledge.fragment(id_).deleted


def test_no_page_may_frame_the_explorer(visitor: Visitor, site: Site, attacker: str):
    visitor.allowed += [
        "^request: " + attacker,
        "X-Frame-Options|frame-ancestors",
        "403",
        "favicon",
    ]
    page = visitor.context().new_page()
    page.goto(attacker)
    page.evaluate(
        """(url) => new Promise((done) => { const frame = document.createElement("iframe");
        frame.src = url; frame.onload = done; document.body.append(frame); })""",
        f"{site.url}/",
    )
    framed = page.frames[-1]
    assert framed.get_by_role("main").count() == 0


def test_a_stored_link_loads_nothing_until_it_is_clicked(visitor: Visitor, site: Site):
    id_ = site.memory.store(
        "See the plan\n\nhttps://plan.invalid/a and [the docs](https://docs.invalid/b)"
    )
    context = visitor.context()
    sent: list[dict[str, str]] = []

    def answer(route) -> None:
        sent.append(route.request.headers)
        route.fulfill(status=200, content_type="text/html", body="<title>There</title>")

    context.route(re.compile(r"https://(plan|docs)\.invalid/"), answer)
    page = visitor.open(f"/fragments/{id_}", context)
    link = page.get_by_role(
        "link", name=re.compile("the docs.*docs.invalid")
    )  # says where it leads
    expect(link).to_have_attribute("rel", re.compile("noreferrer noopener"))
    assert sent == []
    visitor.allowed.append(r"^request: https://docs\.invalid")
    with context.expect_page() as opened:
        link.click()
    opened.value.wait_for_load_state()
    assert [one.get("referer") for one in sent] == [None]
    assert opened.value.evaluate("window.opener") is None
    assert opened.value.evaluate("document.referrer") == ""

"""Windows of the distribution's Chromium, and what goes wrong in them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.site import Site

pytest.importorskip("playwright.sync_api", reason="Playwright is missing: uv sync --group browser")
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Route,
    expect,
    sync_playwright,
)

__all__ = [
    "AXE", "NARROW", "WIDE", "Browser", "Page", "Route", "Visitor", "barriers_of", "chromium",
    "expect", "overflow_of", "settle",
]  # fmt: skip

ROOT = Path(__file__).parents[2]
AXE = ROOT / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, NARROW = 1440, 375
PATIENCE_MS = 20_000
"""Far more than anything takes, also on a machine that does much else."""

expect.set_options(timeout=PATIENCE_MS)

_REPORT_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the distribution's Chromium, or skip the test where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        # Without a folder of the user's, Playwright gives each start an empty one.
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Visitor:
    """Opens pages of a site, each in a context of its own, and notes what goes wrong there."""

    browser: Browser
    site: Site
    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    """Patterns of problems that a test provokes."""

    contexts: list[BrowserContext] = field(default_factory=list)

    def context(self, *, width: int = WIDE, dark: bool = False, key: str = "") -> BrowserContext:
        """Return a new context: logged in, or with a key in each request."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            has_touch=width == NARROW,
            extra_http_headers={"authorization": f"Bearer {key}"} if key else {},
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(_REPORT_VIOLATIONS)
        context.on("page", self._watch)
        self.contexts.append(context)
        if not key:
            url = self.site.login_url("/LICENSES.txt")
            assert context.request.get(url, max_redirects=0).status == 303
        return context

    def open(self, path: str, context: BrowserContext | None = None, **how: Any) -> Page:
        """Open a page and wait until it has loaded what it shows."""
        page = (context or self.context(**how)).new_page()
        page.goto(self.site.url + path)
        settle(page)
        return page

    def check(self) -> None:
        """Fail if something went wrong that the test did not provoke."""
        for context in self.contexts:
            for page in context.pages:
                self.problems += page.evaluate("window.violations ?? []")
            context.close()
        patterns = [re.compile(one) for one in self.allowed]
        wrong = [one for one in self.problems if not any(p.search(one) for p in patterns)]
        assert not wrong, "\n".join(wrong)

    def _watch(self, page: Page) -> None:
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._note_dialog)
        page.on("request", self._note_request)

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location.get("url", "")
            self.problems.append(f"{message.type}: {message.text} {place}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.site.url}/", "data:", "about:")):
            self.problems.append(f"request: {request.url}")


def settle(page: Page) -> None:
    """Wait until a page shows its heading, and nothing of it still loads."""
    expect(page.get_by_role("main").get_by_role("heading", level=1).first).to_be_attached()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)


def overflow_of(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    width: int = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
    return width


@cache
def _axe() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is missing: npm install in explorer/")
    return AXE.read_text("utf-8")


def barriers_of(page: Page, *rules: str) -> list[str]:
    """Return what axe finds serious or critical on a page; by all of its rules or some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    result = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]

"""The welcome page: escaped, without scripts, and only for callers with the read scope."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lore import __version__
from tests.http_api.live_server import Served, serving

HOSTILE = "</style><script src=//evil.example></script><img src=x onerror=alert(1)>\"'&"


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_tells_what_the_memory_holds_and_how_to_go_on(served: Served):
    served.memory.store("Deploys go through ops/deploy.sh")
    reply = served.get("/")
    page = Page(reply.body.decode())
    stats = served.memory.maintenance.stats()
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    for told in (
        f"Version {__version__}", f"fragments{stats.fragments:,}", stats.path, "lore setup all",
        f"http://{served.host}:{served.port}/mcp", "/api/v1/openapi.json",
    ):  # fmt: skip
        assert told in page.text
    (link,) = (attributes["href"] for tag, attributes in page.tags if tag == "a")
    assert served.get(str(link)).json["openapi"]


def test_the_page_is_closed_without_access_and_to_keys_that_may_not_read(served: Served):
    assert served.ask("GET", "/").status == 401
    pushing, _ = served.memory.access.create_key("pusher", scopes=("push",))
    headers = {"authorization": f"Bearer {pushing}"}
    assert served.ask("GET", "/", headers=headers).status == 403


@pytest.mark.parametrize("path", ["/", "/status", "/login?ticket=old"])
def test_a_browser_without_access_is_told_how_to_come_in(served: Served, path: str):
    reply = served.ask("GET", path, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert reply.status == 401
    assert reply.headers["content-type"].startswith("text/html")
    assert "<pre>lore open</pre>" in reply.body.decode()
    assert reply.headers["content-security-policy"] == "default-src 'none'"


def test_a_program_without_access_is_told_in_json(served: Served):
    for accept in ("*/*", "application/json", ""):
        assert served.ask("GET", "/", headers={"accept": accept}).json["code"] == "Unauthorized"


def test_the_policy_allows_the_style_of_the_page_and_nothing_else(served: Served):
    reply = served.get("/")
    (style,) = re.findall("<style>(.*?)</style>", reply.body.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = reply.headers["content-security-policy"]
    assert f"default-src 'none'; style-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert reply.headers["cache-control"] == "no-store"
    tags = Page(reply.body.decode()).tags
    assert "script" not in {tag for tag, _ in tags}
    named = {name for _, attributes in tags for name in attributes}
    assert not [name for name in named if name == "src" or name == "style" or name[:2] == "on"]


def test_whatever_is_shown_is_text(tmp_path: Path):
    home = tmp_path / HOSTILE.replace("/", "_")
    with serving(home, about=lambda: [(HOSTILE, HOSTILE)]) as served:
        page = Page(served.get("/").body.decode())
    assert page.text.count(HOSTILE) == 2
    assert home.name in page.text
    assert not {"script", "img"} & {tag for tag, _ in page.tags}

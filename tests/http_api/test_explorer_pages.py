"""The pages of the explorer: one document for each path, compressed assets, and a way in."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest

from lore.http.explorer_pages import CONTENT_SECURITY_POLICY, ITEMS, PAGES, BuiltExplorer, is_page
from tests.http_api.browser import log_in
from tests.http_api.live_server import Served, serving

INDEX = b"<!doctype html><title>Lore</title>"
SCRIPT = b"console.log('lore')"


@pytest.fixture
def built(tmp_path: Path) -> BuiltExplorer:
    folder = tmp_path / "explorer"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(INDEX)
    (folder / "assets" / "index-abc.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-abc.js.br").write_bytes(brotli.compress(SCRIPT))
    (folder / "assets" / "index-abc.js.gz").write_bytes(gzip.compress(SCRIPT))
    return BuiltExplorer(folder)


@pytest.fixture
def pages(tmp_path: Path, built: BuiltExplorer) -> Iterator[Served]:
    with serving(tmp_path / "home", explorer=built) as running:
        yield running


def test_every_page_is_the_same_document_with_a_strict_policy(pages: Served):
    browser = log_in(pages)
    paths = ["/", *(f"/{name}" for name in PAGES), *(f"/{name}/0123-abc" for name in ITEMS)]
    for path in paths:
        reply = browser.get(f"page:{path}")
        assert (reply.status, reply.body) == (200, INDEX), path
        assert reply.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert reply.headers["cache-control"] == "no-cache"
    assert "unsafe" not in CONTENT_SECURITY_POLICY


def test_health_stays_for_programs(pages: Served):
    assert pages.ask("GET", "/health").json["ok"] is True


@pytest.mark.parametrize(
    ("accepted", "encoding", "decode"),
    [
        ("gzip, deflate, br", "br", brotli.decompress),
        ("gzip;q=0.8", "gzip", gzip.decompress),
        ("", None, bytes),
    ],
)
def test_assets_come_in_the_best_encoding(pages: Served, accepted, encoding, decode):
    reply = log_in(pages).get("page:/assets/index-abc.js", accept_encoding=accepted)
    assert reply.status == 200
    assert reply.headers.get("content-encoding") == encoding
    assert decode(reply.body) == SCRIPT
    assert "immutable" in reply.headers["cache-control"]
    assert "javascript" in reply.headers["content-type"]


@pytest.mark.parametrize(
    "path", ["/assets/none.js", "/assets/..%2findex.html", "/assets/../index.html", "/nothing"]
)
def test_only_files_of_the_explorer_are_served(pages: Served, path: str):
    assert log_in(pages).get(f"page:{path}").status == 404


def test_pages_and_assets_need_a_login(pages: Served):
    for path in ("/", "/review", "/assets/index-abc.js"):
        assert pages.ask("GET", path).status == 401


def test_a_login_leads_to_a_page(pages: Served):
    path = f"/login?ticket={pages.logins.make_ticket()}&next=%2Ffragments%2F0123-abc"
    assert pages.ask("GET", path).headers["location"] == "/fragments/0123-abc"


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "https://evil.example", "/api/v1/me", "/\\evil.example", "/search\r\nx: y",
     "/fragments/a/b", "/fragments/", "/search#x", "javascript:alert(1)"],
)  # fmt: skip
def test_a_login_leads_to_own_pages_only(path: str):
    assert not is_page(path)


def test_a_search_is_a_page():
    assert is_page("/search?q=which+port&kind=decision")
    assert is_page("/")

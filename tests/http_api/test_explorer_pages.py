from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse

from lore.http.app import MountedApp
from lore.http.explorer_pages import is_page, page_target
from lore.http.request_limits import Limits
from tests.http_api.browser import Browser, log_in
from tests.http_api.live_server import Served, serving

PAGES = [
    "/", "/search", "/search?q=port", "/ask", "/fragments/0123abcd", "/graph", "/timeline",
    "/sessions", "/sessions/0123abcd", "/messages/0123abcd", "/spend", "/review", "/tasks",
    "/tasks/0123abcd",
]  # fmt: skip


def build(folder: Path) -> Path:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Lore</title>")
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "sources.sha256").write_text("0")
    script = folder / "assets" / "index-1a2b.js"
    script.write_text("console.log(1)")
    Path(f"{script}.gz").write_bytes(gzip.compress(script.read_bytes()))
    Path(f"{script}.br").write_bytes(b"brotli")
    (folder / "assets" / "only.css").write_text("a {}")
    (folder / "assets" / "odd.exe").write_text("no")
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    explorer = build(tmp_path_factory.mktemp("built") / "explorer")
    (explorer.parent / "secret.txt").write_text("secret")
    (explorer / "assets" / "link.js").symlink_to(explorer.parent / "secret.txt")
    forwarded = MountedApp("/", PlainTextResponse("forwarded"))
    home = tmp_path_factory.mktemp("home")
    unbounded = Limits(requests_per_minute=0, anonymous_per_minute=0)
    with serving(home, limits=unbounded, rest=forwarded, explorer=explorer) as running:
        yield running


@pytest.fixture(scope="module")
def browser(served: Served) -> Browser:
    return log_in(served)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_the_same_file_under_a_strict_policy(browser: Browser, path: str):
    reply = browser.get(f"page:{path}")
    assert reply.status == 200
    assert reply.body == b"<!doctype html><title>Lore</title>"
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["cache-control"] == "private, no-cache"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_asked_to_log_in(served: Served, path: str):
    reply = served.ask("GET", path, headers={"accept": "text/html", "sec-fetch-site": "none"})
    assert reply.status == 401
    assert b"lore open" in reply.body


def test_a_page_is_not_sent_twice(browser: Browser):
    tag = browser.get("page:/graph").headers["etag"]
    again = browser.get("page:/spend", if_none_match=tag)
    assert (again.status, again.body) == (304, b"")


def test_assets_are_compressed_and_last(browser: Browser):
    path = "page:/assets/index-1a2b.js"
    plain = browser.get(path)
    assert plain.body == b"console.log(1)"
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in plain.headers["cache-control"]
    assert plain.headers["vary"] == "accept-encoding"
    packed = browser.get(path, accept_encoding="gzip, deflate")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert browser.get(path, accept_encoding="gzip, br").headers["content-encoding"] == "br"
    refused = browser.get(path, accept_encoding="br;q=0, gzip;q=0.5")
    assert refused.headers["content-encoding"] == "gzip"
    single = browser.get("page:/assets/only.css", accept_encoding="gzip, br")
    assert "content-encoding" not in single.headers
    assert browser.get("page:/icon.svg").headers["content-type"] == "image/svg+xml"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../index.html", "/assets/..%2f..%2fsecret.txt", "/assets/%2e%2e/index.html",
        "/assets//etc/passwd", "/assets/index-1a2b.js.gz", "/assets/none.js", "/assets/",
        "/assets/odd.exe", "/assets/link.js", "/sources.sha256", "/index.html", "/secret.txt",
        "/assets/..\\secret.txt", "/LICENSES.txt",
    ],
)  # fmt: skip
def test_no_other_file_is_served(browser: Browser, path: str):
    assert browser.get(f"page:{path}").status == 404


def test_pages_are_read_only(browser: Browser):
    headers = {"cookie": browser.cookie, "origin": browser.origin, "sec-fetch-site": "same-origin"}
    reply = browser.served.ask("POST", "/search", headers=headers, body=b"{}")
    assert reply.status == 405


def test_the_gateway_gets_what_is_posted_and_no_page(served: Served):
    # No browser sends these: programs do.
    for path in ("/sessions", "/search", "/fragments/0123abcd", "/assets/index-1a2b.js", "/"):
        assert served.get(path).body != b"forwarded"
        assert served.get(path).status == 200
    assert served.ask("POST", "/v1/messages", body=b"{}").body == b"forwarded"
    assert served.ask("POST", "/responses", body=b"{}").body == b"forwarded"
    assert served.ask("POST", "/search", body=b"{}").body == b"forwarded"
    assert served.ask("HEAD", "/").status == 200


def test_health_is_a_page_for_a_browser_and_json_for_others(served: Served, browser: Browser):
    assert served.ask("GET", "/health").json["ok"] is True
    page = browser.get("page:/health", accept="text/html,*/*")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]


def test_a_login_leads_to_the_page_that_was_asked_for(served: Served):
    def leads_to(target: str) -> str:
        ticket = served.logins.make_ticket()
        reply = served.ask("GET", f"/login?ticket={ticket}&next={target}")
        assert reply.status == 303
        return reply.headers["location"]

    assert leads_to("/fragments/0123abcd") == "/fragments/0123abcd"
    assert leads_to("/search%3Fq%3Dport") == "/search?q=port"
    assert leads_to("//evil.example/graph") == "/"
    assert leads_to("https://evil.example/graph") == "/"
    assert leads_to("/%5Cevil.example") == "/"
    assert leads_to("/api/v1/logins") == "/"
    assert leads_to("/login") == "/"


@given(st.text(max_size=60) | st.text("/\\:.?#@evil \t\n", max_size=20))
def test_no_login_leads_to_another_server(target: str):
    leads = page_target(target)
    assert leads.startswith("/")
    assert not leads.startswith(("//", "/\\"))
    assert is_page(leads.partition("?")[0])


def test_without_a_build_pages_show_the_welcome_page(tmp_path: Path):
    with serving(tmp_path) as served:
        for path in ("/", "/search", "/fragments/0123abcd"):
            page = served.get(path)
            assert page.status == 200
            assert b"explorer/build.py" in page.body
        assert served.get("/assets/index.js").status == 404
        assert served.get("/health", accept="text/html").json["ok"] is True


def test_a_new_build_is_served_at_once(tmp_path: Path):
    explorer = tmp_path / "explorer"
    with serving(tmp_path / "home", explorer=explorer) as served:
        assert b"explorer/build.py" in served.get("/").body
        build(explorer)
        assert served.get("/").body == b"<!doctype html><title>Lore</title>"
        assert served.get("/assets/only.css").status == 200

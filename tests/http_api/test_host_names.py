from __future__ import annotations

from pathlib import Path

import pytest
from starlette.datastructures import Headers

from lore.http.auth import allowed_host_names, host_rejection_reason
from tests.http_api.live_server import Served, serving

NAMES = allowed_host_names("127.0.0.1")


def refused(names: frozenset[str] = NAMES, *, by_cookie: bool = False, **headers: str) -> bool:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return bool(host_rejection_reason(Headers(raw=pairs), names, by_cookie=by_cookie))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:3207", "localhost:3207", "LOCALHOST", "[::1]:3207", "localhost.:80"]
)
def test_the_names_of_this_machine_are_allowed(host: str):
    assert not refused(host=host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:3207", "127.0.0.1.evil.example", "localhost@evil.example",
        "evil.example#localhost", "", " ", "127.0.0.2", "0.0.0.0", "[::]", "169.254.169.254",
        "localhost:99999", "localhost:x", "localhost/..", "2130706433", "[::ffff:127.0.0.1]",
        "loc\talhost", "localhost..", "local host", "localhost\n",
    ],
)  # fmt: skip
def test_any_other_host_is_refused(host: str):
    assert refused(host=host)


def test_a_request_without_a_host_or_with_two_is_refused():
    assert refused()
    pairs = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert host_rejection_reason(Headers(raw=pairs), NAMES, by_cookie=False)


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", ""])
def test_a_server_bound_to_every_address_is_called_by_loopback_and_named_hosts_only(bound: str):
    names = allowed_host_names(bound, ["Lore.Example."])
    assert names == {"localhost", "127.0.0.1", "::1", "lore.example"}
    assert not refused(names, host="lore.example:3207")
    assert refused(names, host="192.168.0.7:3207")


def test_the_address_it_is_bound_to_is_one_of_its_names():
    assert not refused(allowed_host_names("192.168.0.7"), host="192.168.0.7:3207")


@pytest.mark.parametrize(
    ("host", "origin", "is_refused"),
    [
        ("localhost:3207", "http://localhost:3207", False),
        ("lore.example", "https://lore.example", False),
        ("lore.example:443", "https://lore.example", False),
        ("localhost:3207", "http://localhost:8080", True),
        ("localhost:3207", "http://localhost", True),
        ("localhost:3207", "http://127.0.0.1:3207", True),
        ("localhost:3207", "https://evil.example", True),
        ("localhost:3207", "https://localhost:3207", True),
        ("127.0.0.1:3207", "https://127.0.0.1:3207", True),
        ("localhost:3207", "http://local\thost:3207", True),
        ("localhost:3207", "null", True),
        ("localhost:3207", "", True),
        ("localhost:3207", "file://", True),
        ("localhost:3207", "chrome-extension://localhost:3207", True),
        ("localhost:3207", "http://localhost:3207.evil.example", True),
        ("localhost:3207", "http://localhost:3207@evil.example", True),
    ],
)
def test_a_page_of_another_origin_is_refused(host: str, origin: str, is_refused: bool):
    names = allowed_host_names("127.0.0.1", ["lore.example"])
    assert refused(names, host=host, origin=origin) is is_refused


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_cookie_from_a_page_of_another_site_is_refused(site: str):
    assert refused(host="localhost", sec_fetch_site=site, by_cookie=True)
    assert not refused(host="localhost", sec_fetch_site=site)
    assert not refused(host="localhost", sec_fetch_site="same-origin", by_cookie=True)


HOSTILE = [
    {"host": "evil.example"},
    {"host": "localhost", "origin": "https://evil.example"},
    {"host": "localhost", "origin": "null"},
]


@pytest.mark.parametrize("headers", HOSTILE)
@pytest.mark.parametrize("path", ["/health", "/login?ticket=x", "/api/v1/stats", "/nowhere"])
def test_what_is_hostile_gets_nothing_even_with_the_key(
    served: Served, headers: dict[str, str], path: str
):
    reply = served.ask("GET", path, headers={**headers, "x-lore-key": served.key})
    assert reply.status == 403
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("headers", HOSTILE)
def test_it_is_refused_too_where_the_server_is_bound_to_every_address(
    tmp_path: Path, headers: dict[str, str]
):
    with serving(tmp_path, host="0.0.0.0") as served:
        hostile = {**headers, "x-lore-key": served.key}
        assert served.ask("GET", "/api/v1/stats", headers=hostile).status == 403
        usual = {"host": "localhost", "x-lore-key": served.key}
        assert served.ask("GET", "/api/v1/stats", headers=usual).status == 200


def test_a_preflight_of_another_site_is_refused(served: Served):
    headers = {
        "origin": "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }
    reply = served.ask("OPTIONS", "/api/v1/retrieve", headers=headers)
    assert reply.status == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]

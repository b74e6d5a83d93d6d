from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.gateway import client_session, request_head, request_planner
from lore.gateway.plugin_protocol import ClientRequest


def test_hop_by_hop_headers_are_dropped():
    given_ones = [(name, b"x") for name in request_head.HOP_BY_HOP]
    assert request_head.upstream_headers(given_ones, identity=False) == []
    assert request_head.client_headers(given_ones) == []


def test_headers_named_by_connection_are_dropped():
    came = [(b"connection", b"keep-alive, X-Hop"), (b"x-hop", b"1"), (b"x-else", b"2")]
    assert request_head.upstream_headers(came, identity=False) == [("x-else", "2")]
    assert request_head.client_headers(came) == [(b"x-else", b"2")]


def test_identity_encoding_is_requested_for_responses_that_are_read():
    came = [(b"accept-encoding", b"gzip"), (b"accept-encoding", b"br")]
    assert request_head.upstream_headers(came, identity=True) == [("accept-encoding", "identity")]
    assert request_head.upstream_headers(came, identity=False) == [
        ("accept-encoding", "gzip"),
        ("accept-encoding", "br"),
    ]


def test_changed_body_has_no_content_encoding():
    came = [(b"content-encoding", b"zstd"), (b"content-type", b"application/json")]
    kept = request_head.upstream_headers(came, identity=False, changed=True)
    assert kept == [("content-type", "application/json")]


def test_rewritten_response_has_no_content_length():
    came = [(b"Content-Length", b"5"), (b"X-Request-Id", b"1")]
    assert request_head.client_headers(came, rewritten=True) == [(b"x-request-id", b"1")]
    assert request_head.client_headers(came) == [(b"content-length", b"5"), (b"x-request-id", b"1")]


def test_lore_cookies_are_dropped():
    for cookies, kept in (
        ("lore_3207=s; a=1", [("cookie", "a=1")]),
        ("a=1; lore_3207=s", [("cookie", "a=1")]),
        ("lore_3207=s", []),
        ("a=1; b=2", [("cookie", "a=1; b=2")]),
    ):
        assert (
            request_head.upstream_headers([(b"cookie", cookies.encode())], identity=False) == kept
        )


@given(st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f", codec="utf-8")))
def test_utf_8_header_value_keeps_its_bytes(value: str):
    came = [(b"x-title", value.encode())]
    ((_, told),) = request_head.upstream_headers(came, identity=False)
    assert told.encode() == value.encode()


NAMES = st.one_of(
    st.sampled_from(sorted(request_head.VISIBLE_HEADERS)), st.text("abc-", min_size=1)
)


@given(st.dictionaries(NAMES, st.text("abc")))
def test_only_identifying_headers_are_visible(given_ones: dict[str, str]):
    shown = request_head.visible_headers(given_ones)
    assert shown.items() <= given_ones.items()
    assert set(shown) == set(given_ones) & request_head.VISIBLE_HEADERS


class Noting(dict[str, str]):
    """Headers that note which of them are asked for."""

    def __init__(self, **told: str) -> None:
        super().__init__({name.replace("_", "-"): value for name, value in told.items()})
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def test_all_headers_that_identify_clients_are_visible():
    asked: set[str] = set()
    for told in (
        Noting(x_claude_code_session_id="s"),
        Noting(originator="codex"),
        Noting(user_agent="opencode", x_session_id="s"),
    ):
        said = client_session.RequestInfo(told, {}, ())
        client_session.find_client_session(said)
        client_session.folder_of(said)
        client_session.is_auxiliary(said)
        ClientRequest("gemini", "/", "", told, b"", 1).body()
        asked |= told.asked
    assert asked | {request_planner.RELAY_HEADER} == request_head.VISIBLE_HEADERS


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("alt=sse", "alt=sse"),
        ("key=s&%61lt=sse&access_token=s", "alt=sse"),
        ("alt=json&api_key=s", "alt=json"),
        ("key=s&alternative=s&=alt&alt", ""),
        ("", ""),
    ],
)
def test_only_the_alt_parameter_is_visible(query: str, shown: str):
    assert request_head.visible_query(query) == shown


@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=10))
def test_any_header_is_accepted(pairs: list[tuple[bytes, bytes]]):
    request_head.upstream_headers(pairs, identity=True)
    request_head.client_headers(pairs)

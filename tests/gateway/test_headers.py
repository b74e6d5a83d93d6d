from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.gateway import headers


def test_what_concerns_one_connection_goes_no_further():
    given_ones = [(name, b"x") for name in headers.HOP_BY_HOP]
    assert headers.for_upstream(given_ones, identity=False) == []
    assert headers.for_client(given_ones) == []


def test_what_a_connection_header_names_goes_no_further():
    came = [(b"connection", b"keep-alive, X-Hop"), (b"x-hop", b"1"), (b"x-else", b"2")]
    assert headers.for_upstream(came, identity=False) == [("x-else", "2")]
    assert headers.for_client(came) == [(b"x-else", b"2")]


def test_an_answer_that_is_read_is_asked_for_as_it_is():
    came = [(b"accept-encoding", b"gzip"), (b"accept-encoding", b"br")]
    assert headers.for_upstream(came, identity=True) == [("accept-encoding", "identity")]
    assert headers.for_upstream(came, identity=False) == [
        ("accept-encoding", "gzip"),
        ("accept-encoding", "br"),
    ]


def test_a_body_that_was_changed_has_no_encoding():
    came = [(b"content-encoding", b"zstd"), (b"content-type", b"application/json")]
    kept = headers.for_upstream(came, identity=False, changed=True)
    assert kept == [("content-type", "application/json")]


def test_an_answer_that_is_spliced_has_no_length():
    came = [(b"Content-Length", b"5"), (b"X-Request-Id", b"1")]
    assert headers.for_client(came, spliced=True) == [(b"x-request-id", b"1")]
    assert headers.for_client(came) == [(b"content-length", b"5"), (b"x-request-id", b"1")]


def test_only_cookies_of_others_go_on():
    for cookies, kept in (
        ("lore_3207=s; a=1", [("cookie", "a=1")]),
        ("a=1; lore_3207=s", [("cookie", "a=1")]),
        ("lore_3207=s", []),
        ("a=1; b=2", [("cookie", "a=1; b=2")]),
    ):
        assert headers.for_upstream([(b"cookie", cookies.encode())], identity=False) == kept


@given(st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f", codec="utf-8")))
def test_a_value_that_is_utf_8_keeps_its_bytes(value: str):
    came = [(b"x-title", value.encode())]
    ((_, told),) = headers.for_upstream(came, identity=False)
    assert told.encode() == value.encode()


NAMES = st.sampled_from([*sorted(headers.CREDENTIALS), "x-a", "content-type", "x-lore-project"])


@given(st.lists(st.tuples(NAMES, st.text("abc", min_size=1)), max_size=10))
def test_no_credential_is_shown(pairs: list[tuple[str, str]]):
    shown = headers.to_show(dict(pairs))
    assert not set(shown) & headers.CREDENTIALS
    assert set(shown) == {name for name, _ in pairs} - headers.CREDENTIALS


@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=10))
def test_any_header_can_be_read(pairs: list[tuple[bytes, bytes]]):
    headers.for_upstream(pairs, identity=True)
    headers.for_client(pairs)

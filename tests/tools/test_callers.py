from __future__ import annotations

from urllib.parse import quote

import pytest

from lore.records import Grant
from lore.tools.callers import GRANT, caller_of, find_grant
from lore.tools.tool import Caller

KEY = Grant("key", frozenset({"read"}))
BROWSER = Grant("browser", frozenset({"read"}), browser=True)


def test_headers_tell_the_folder_and_the_session_of_a_caller():
    headers = {"x-lore-project": quote("/code/größe"), "x-lore-session": "s%201"}
    assert caller_of(headers, KEY) == Caller(project="/code/größe", session="s 1")


def test_what_comes_by_cookie_is_the_persons_word():
    assert caller_of({}, BROWSER).origin == "user"
    assert caller_of({}, KEY).origin == caller_of({}, None).origin == "assistant"


def test_a_header_is_cut_where_a_path_would_end():
    assert len(caller_of({"x-lore-project": "/" + "x" * 9_000}, KEY).project) == 4_096


@pytest.mark.parametrize(
    ("said", "within_s"), [("", None), ("150", 0.15), ("-1", None), ("²", None), ("9" * 9, None)]
)
def test_a_caller_may_say_how_long_it_waits(said: str, within_s: float | None):
    assert caller_of({"x-lore-within-ms": said}, KEY).within_s == within_s


def test_a_request_that_passed_no_gate_has_no_grant():
    assert find_grant({}) is None
    assert find_grant({GRANT: KEY}) is KEY

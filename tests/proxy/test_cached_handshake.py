"""The cached handshake: its fingerprint, and which requests it answers."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from lore.mcp.handshake_builder import save_handshake
from lore.proxy import cached_handshake
from lore.proxy.cached_handshake import HANDSHAKE_FILE, UNKNOWN_VERSION, Handshake, find_result
from lore.settings import Settings

KEPT: Handshake = {
    UNKNOWN_VERSION: {"initialize": {"protocolVersion": "2"}},
    "1": {"initialize": {"protocolVersion": "1"}, "tools/list": {"tools": [1]}},
    "3": {"server/discover": {"supportedVersions": ["3"]}, "tools/list": {"tools": [3]}},
}
OTHER: dict[str, Any] = {"mcp_profile": "full", "mcp_aliases": True, "mcp_structured": True}


def request(method: str, id_: object = 1, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def introduction(version: object) -> dict[str, object]:
    return request("initialize", protocolVersion=version, capabilities={}, clientInfo={})


def meta(version: object) -> dict[str, object]:
    return {cached_handshake.VERSION_FIELD: version, cached_handshake.CAPABILITIES_FIELD: {}}


def test_a_greeting_is_found_by_its_mark_alone(tmp_path: Path):
    home = str(tmp_path)
    assert cached_handshake.load_handshake(home, "mark") is None
    save_handshake(tmp_path, "mark", KEPT)
    assert cached_handshake.load_handshake(home, "mark") == KEPT
    assert cached_handshake.load_handshake(home, "another") is None
    assert cached_handshake.load_handshake(home, "") is None
    assert (tmp_path / HANDSHAKE_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [HANDSHAKE_FILE]
    cached_handshake.delete_handshake(home)
    cached_handshake.delete_handshake(home)
    assert cached_handshake.load_handshake(home, "mark") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"mark": "m"}', b'{"mark": "m", "answers": 3}', b"\xff",
     b'{"mark": "m", "answers": {"1": 3}}', b'{"mark": "m", "answers": {"1": {"ping": 3}}}',
     b"[" * 100_000],
)  # fmt: skip
def test_a_file_that_is_no_greeting_is_none(tmp_path: Path, content: bytes):
    (tmp_path / HANDSHAKE_FILE).write_bytes(content)
    assert cached_handshake.load_handshake(str(tmp_path), "m") is None


def test_every_setting_of_mcp_that_changes_what_is_told_changes_the_mark():
    named = {spec.name for spec in fields(Settings) if spec.name.startswith("mcp_")}
    assert named == {*OTHER, "mcp_start"}
    usual = Settings()
    marks = {
        cached_handshake.fingerprint("1", replace(usual, **{name: OTHER[name]})) for name in OTHER
    }
    assert (
        len({
            *marks,
            cached_handshake.fingerprint("1", usual),
            cached_handshake.fingerprint("2", usual),
        })
        == 5
    )


def test_a_handshake_is_answered_in_the_version_it_names_or_in_the_usual_one():
    assert find_result(KEPT, introduction("1"), "") == {"protocolVersion": "1"}
    assert find_result(KEPT, introduction("moon"), "") == {"protocolVersion": "2"}


def test_a_list_is_answered_in_the_version_that_was_agreed_on_or_that_it_names():
    assert find_result(KEPT, request("tools/list"), "1") == {"tools": [1]}
    assert find_result(KEPT, request("tools/list", _meta=meta("3")), "") == {"tools": [3]}
    assert find_result(KEPT, request("tools/list", _meta={"progressToken": 1}), "1")
    assert find_result(KEPT, {"id": "a", "method": "tools/list"}, "1") == {"tools": [1]}


@pytest.mark.parametrize(
    "message",
    [
        introduction(3),
        request("initialize", protocolVersion="1", capabilities={}),
        request("initialize", protocolVersion="1", capabilities=1, clientInfo={}),
        request("tools/list", cursor="next"),
        request("tools/list", _meta={cached_handshake.VERSION_FIELD: "3"}),
        request("tools/list", _meta=meta("moon")),
        request("tools/list", _meta=meta(3)),
        request("tools/list", _meta=meta(UNKNOWN_VERSION)),
        request("prompts/list"),
        request("tools/list", id_=None),
        request("tools/list", id_=True),
        request("tools/list", id_=[1]),
        {"id": 1, "method": "tools/list", "params": 3},
    ],
)
def test_what_lore_might_answer_otherwise_is_left_to_it(message: dict[str, object]):
    assert find_result(KEPT, message, "1") is None


def test_a_list_before_any_handshake_is_left_to_lore():
    assert find_result(KEPT, request("tools/list"), "") is None

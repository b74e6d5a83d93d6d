from __future__ import annotations

import gzip
import json

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lore.gateway.plugin_protocol import ClientRequest
from lore.gateway.request_head import may_be_command, peek_cost


def incoming(raw: bytes, path: str = "/v1/messages", encoding: str = "") -> ClientRequest:
    return ClientRequest("anthropic", path, "", {"content-encoding": encoding}, raw, 1_000)


@pytest.mark.parametrize(
    ("path", "raw", "model"),
    [
        ("/v1/messages", b'{"model": "claude-x"}', "claude-x"),
        ("/v1beta/models/gemini-y:generateContent", b"{}", "gemini-y"),
        ("/v1/messages", b"no gzip", ""),
        ("/v1/messages", b'{"temperature": NaN, "model": "claude-x"}', "claude-x"),
        ("/v1/messages", b'{"model": 7}', ""),
        # What a tool was called with is no model, wherever it stands.
        ("/v1/messages", b'{"messages": [{"input": {"model": "cheap"}}], "model": "dear"}', "dear"),
    ],
)
def test_model_is_found_without_parsing_messages(path: str, raw: bytes, model: str):
    assert peek_cost(incoming(raw, path)).model == model


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("br", brotli.compress),
        ("zstd", lambda body: zstandard.ZstdCompressor().compress(body)),
    ],
)
def test_cost_is_the_same_in_any_encoding(encoding, encode):
    body = json.dumps({"model": "claude-x", "stream": True, "max_tokens": 9}).encode()
    assert peek_cost(incoming(encode(body), encoding=encoding)) == peek_cost(incoming(body))


def test_undecodable_body_is_measured_raw():
    seen = peek_cost(incoming(b"x" * 30, encoding="secret"))
    assert (seen.model, seen.streams, seen.length) == ("", False, 30)


@pytest.mark.parametrize(
    ("path", "raw", "streams"),
    [
        ("/v1/messages", b'{"stream" : true}', True),
        ("/v1/messages", b'{"stream": "true"}', False),
        ("/v1/messages", b'{"messages": [{"input": {"stream": true}}]}', False),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", b"{}", True),
        ("/v1beta/models/m:streamGenerateContent", b"{}", False),
    ],
)
def test_streaming_is_detected(path: str, raw: bytes, streams: bool):
    assert peek_cost(incoming(raw, path)).streams is streams


@pytest.mark.parametrize(
    ("raw", "long"),
    [
        (b'{"system": [{"cache_control": {"type": "ephemeral", "ttl": "1h"}}]}', True),
        (b'{"system": [{"cache_control": {"ttl":"1h"}}]}', True),
        (b'{"system": [{"cache_control": {"type": "ephemeral"}}]}', False),
    ],
)
def test_one_hour_cache_is_detected(raw: bytes, long: bool):
    assert peek_cost(incoming(raw)).long is long


def test_number_of_answers_is_found():
    assert peek_cost(incoming(b'{"n": 100}')).asks["n"] == 100


def said(*texts: str, under: str = "messages", last: bool = True) -> bytes:
    talk = {under: [{"role": "user", "content": text} for text in texts]}
    more = {"tools": [{"description": "lore: none of a person's words"}]}
    return json.dumps(talk | more if last else more | talk).encode()


@pytest.mark.parametrize("under", ["messages", "input", "contents"])
@pytest.mark.parametrize("last", [True, False])
def test_command_is_searched_in_the_last_messages(under: str, last: bool):
    for typed in ("/lore:status", "LORE:AMNESIA on"):
        assert may_be_command(incoming(said("Hello", typed, under=under, last=last)))
        assert may_be_command(incoming(said(typed, "reminder", under=under, last=last)))
    past = ("/lore:status", "a", "b", "c", "d")
    assert not may_be_command(incoming(said(*past, under=under, last=last)))


def test_malformed_body_may_be_a_command():
    assert may_be_command(incoming(b'{"messages": NaN, "x": "lore:status"}'))
    assert not may_be_command(incoming(b'{"messages": NaN}'))
    assert not may_be_command(incoming(b'"lore:status"', encoding="gzip"))
    assert may_be_command(incoming(gzip.compress(said("lore:status")), encoding="gzip"))


DEEP = b'{"a":' * 5_000 + b"1" + b"}" * 5_000


@pytest.mark.parametrize(
    "raw",
    [
        b'{"tools": [{"model": "cheap", "schema": %s}], "model": "dear", "n": 3, "stream": true}'
        % DEEP,
        b'{"model": "dear", "n": 3, "stream": true, "tools": [{"model": "cheap", "schema": %s}]}'
        % DEEP,
        b'{"t": NaN, "x": {"model": "cheap"}, "model" : "dear", "n": 3, "stream": true}',
        b'{"x": "\\"model\\": \\"cheap\\"", "t": NaN, "model":"dear","n":3,"stream":true}',
        b'\xef\xbb\xbf{"model": "dear", "n": 3, "stream": true}',
        b'{"model": "dear", "n": 3, "stream": true} {"model": "cheap"}',
        b'{"model": "cheap", "n": 3, "stream": true, "t": NaN, "model": "dear"}',
    ],
    ids=["deep first", "deep last", "no number", "text", "mark", "two", "twice"],
)
def test_scan_agrees_with_the_parser_for_any_body(raw: bytes):
    seen = peek_cost(incoming(raw))
    assert (seen.model, seen.asks["n"], seen.streams) == ("dear", 3, True)


def test_gemini_limits_are_found_in_a_body_of_any_depth():
    raw = b'{"generationConfig": {"maxOutputTokens": 9, "candidateCount": 2}, "x": %s}' % DEEP
    seen = peek_cost(incoming(raw, "/v1beta/models/m:generateContent"))
    assert seen.asks["generationConfig"] == {"maxOutputTokens": 9, "candidateCount": 2}


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 200_000,
        b"]" * 10,
        b'{"model": ' + DEEP + b"}",
        b'{"model": "',
        b'{"model": "x\\',
        b'{"model": "\\ud800", "x": NaN}',
        b'{"max_tokens": 1' + b"0" * 400 + b"}",
        b'{"n": 1' + b"0" * 400 + b', "x": NaN}',
        '{"model": "x"}'.encode("utf-16"),
        b'{"x": NaN, "y": "' + b'\\"' * 300_000,
    ],
    ids=range(10),
)
def test_odd_bodies_do_not_break_the_peek(raw: bytes):
    seen = peek_cost(ClientRequest("anthropic", "/v1/messages", "", {}, raw, 1_000_000))
    assert seen.length == len(raw)


@pytest.mark.parametrize(
    ("written", "told"), [("7", 7), ("1e9", None), ("1.5", None), ("9" * 400, int("9" * 20))]
)
def test_number_is_read_complete_or_not_at_all(written: str, told: int | None):
    raw = f'{{"x": NaN, "max_tokens": {written}}}'.encode()
    assert peek_cost(incoming(raw)).asks.get("max_tokens") == told


@given(st.one_of(st.binary(), st.text('{}[]":, \\modelstrn1').map(str.encode)))
def test_peek_never_fails(raw: bytes):
    assert peek_cost(incoming(raw)).length == len(raw)

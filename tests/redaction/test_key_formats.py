"""Key formats: private keys in PEM, and the length of others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.redaction.redactor import KEY_FORMATS, SHORTEST_KEY, KeyFormat, find_pem

BEGIN, END = b"-----BEGIN PRIVATE KEY-----", b"-----END PRIVATE KEY-----"
BODY = b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"


def found(data: bytes) -> list[bytes]:
    return [data[start:end] for start, end, _ in find_pem(data)]


def test_each_of_several_keys_is_found():
    whole = BEGIN + b"\n" + BODY + b"\n" + END
    cut = BEGIN + b"\\n" + BODY
    assert found(whole + b"\n\n" + cut + b"\\n\\n" + BEGIN + b"\n" + whole) == [whole, cut, whole]


@pytest.mark.parametrize("head", [BEGIN + b"\n", BEGIN, b"Private-Lines: 1\n"])
def test_megabytes_of_first_lines_hold_no_key(head: bytes):
    assert found(head * (4_000_000 // len(head))) == []


@pytest.mark.parametrize("between", [b" " * 39_000, b"\n" * 39_000, b"\\n" * 19_000])
def test_text_after_a_truncated_key_is_scanned_once(between: bytes):
    assert found((BEGIN + BODY + between + b"!") * 50) == [BEGIN + BODY] * 50
    assert found((BEGIN + between + BODY + b"!") * 50) == [BEGIN + between + BODY] * 50


def keys_of(key_format: KeyFormat) -> st.SearchStrategy[bytes]:
    pattern = f"(?:{key_format.before})(?:{key_format.pattern})"
    return st.from_regex(pattern.encode("latin-1"), fullmatch=True)


@settings(max_examples=1_000)
@given(st.sampled_from(KEY_FORMATS).flatmap(keys_of))
def test_a_key_has_a_long_word(key: bytes):
    assert max(map(len, key.split(b" "))) >= SHORTEST_KEY

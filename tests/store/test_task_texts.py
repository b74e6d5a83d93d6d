"""Texts in stored values are found as they read, and only they are cut out."""

from __future__ import annotations

import base64
import json

import pytest

from lore.store.hard_delete import normalize_text
from lore.store.task_texts import cut_texts


def cut(value: object, word: str) -> object:
    stored = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    needle = normalize_text(word)
    left, _ = cut_texts(stored, lambda text: needle in normalize_text(text))
    return None if left is None else json.loads(left)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"done": "client\nZanzibar"}, "client Zanzibar"),
        ({"done": 'a "quoted" word'}, 'a "quoted" word'),
        ({"text": '{"who": "J\\u00fcrgen"}'}, "Jürgen"),
        ({"text": '{"who": "J\\u00fcrgen"}\n'}, "Jürgen"),
        ({"text": "the client\n\nZanzibar"}, "client Zanzibar"),
        ({"data": base64.b64encode("Jürgen".encode("latin-1")).decode()}, "Jürgen"),
        ({"data": base64.b64encode("Jürgen".encode("utf-16")).decode()}, "Jürgen"),
    ],
)
def test_a_text_is_found_as_it_reads(value: object, word: str) -> None:
    assert cut(value, word) is None


def test_the_rest_of_a_file_stays() -> None:
    frame = {
        "key": "patterns",
        "around": {"version": "1", "note": "keep", "by": "Numbat", "patterns": []},
        "others": [[0, {"x": "keep me 1"}], [1, {"x": "a numbat", "y": 2}]],
    }
    around = {"version": "1", "note": "keep", "patterns": []}
    assert cut(frame, "numbat") == {
        **frame, "around": around, "others": [[0, {"x": "keep me 1"}]],
    }  # fmt: skip
    events = {"text": json.dumps({"events": [{"a": "numbat", "b": 1}, {"a": "emu"}], "n": 1})}
    left = cut(events, "numbat")
    assert isinstance(left, dict)
    assert json.loads(left["text"]) == {"events": [{"a": "emu"}], "n": 1}
    lines = {"text": 'one\na Numbat\n{"a": "n\\u0075mbat"}\nfour\n'}
    assert cut(lines, "numbat") == {"text": "one\nfour\n"}


def test_a_file_without_the_text_stays_as_it_is() -> None:
    stored = '{"text":   "{ \\"a\\":1 }"}'
    assert cut_texts(stored, lambda text: "numbat" in text) == (stored, set())

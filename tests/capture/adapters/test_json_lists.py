"""Lists of JSON, cut into their objects wherever the stream is cut."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.capture.adapters.json_lists import read_objects
from lore.errors import InvalidInput

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=6)


class Trickle(io.BytesIO):
    """A stream that gives few bytes at a time, however many are asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        """Return a few bytes."""
        return super().read(min(self.most, size or 0))


def found(data: bytes, most: int = 1 << 20, *, most_bytes: int = 1 << 20) -> list[Any]:
    return [json.loads(each) for each in read_objects(Trickle(data, most), most_bytes=most_bytes)]


@given(OBJECTS, st.integers(1, 40), st.booleans(), st.sampled_from([None, 2]))
def test_the_objects_of_a_list_are_found_however_the_stream_is_cut(objects, most, ascii, indent):
    data = json.dumps(objects, ensure_ascii=ascii, indent=indent).encode("utf-8", "surrogatepass")
    assert found(data, most) == objects


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.integers(1, 40))
def test_one_object_is_found_whole(told, most):
    assert found(b"\xef\xbb\xbf " + json.dumps(told).encode() + b"\n", most) == [told]


def test_what_is_no_object_in_a_list_is_passed_over():
    assert found(b'[1, "a]", null, {"a": "}"}, [2], true]') == [{"a": "}"}, [2]]


@pytest.mark.parametrize("data", [b"", b"  ", b"[{", b'[{"a": "b', b'"text"', b"7", b"x [{}]"])
def test_what_is_no_list_or_ends_in_the_middle_is_told(data):
    with pytest.raises(InvalidInput, match="no JSON"):
        found(data)


def test_an_object_that_is_too_large_is_refused_before_it_is_whole():
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return b'[{"a": "' if self.given == size else b"x" * size

    stream = Endless()
    with pytest.raises(InvalidInput, match="larger than 3 MB"):
        list(read_objects(stream, most_bytes=3 << 20))  # type: ignore[arg-type]
    assert stream.given < 16 << 20

"""Server-sent events are read alike, however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.gateway.sse import Event, EventReader, documents, end_of_last, write

ENDS = ("\n", "\r\n", "\r")
lines = st.text(st.sampled_from("abc: {}é"), max_size=8)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    pieces = []
    for _ in range(draw(st.integers(1, 4))):
        end = draw(st.sampled_from(ENDS))
        fields = draw(st.lists(st.sampled_from(["event: x", "data:", "data: ", ": ping"])))
        pieces += [field + draw(lines) + end for field in fields]
        pieces += ['data: {"a": "b"}' + end] if draw(st.booleans()) else []
        pieces.append(end)
    if draw(st.booleans()):
        pieces.append("data: cut off")
    return "".join(pieces).encode()


def read(stream: bytes, cuts: list[int]) -> list[Event]:
    reader = EventReader()
    places = [0, *sorted(cuts), len(stream)]
    events: list[Event] = []
    for start, end in pairwise(places):
        events += reader.feed(stream[start:end])
    return events + reader.end()


@given(data=st.data(), stream=streams())
def test_events_are_the_same_for_any_chunks(data, stream):
    whole = read(stream, [])
    cuts = data.draw(st.lists(st.integers(0, len(stream))))
    assert read(stream, cuts) == whole
    assert read(stream, list(range(len(stream)))) == whole
    assert b"".join(event.raw for event in whole) == stream


@given(stream=streams())
def test_documents_agree_with_the_event_reader(stream):
    told = [event.document() for event in read(stream, [])]
    assert [one for one in documents(stream) if one] == [one for one in told if one]


@pytest.mark.parametrize(
    "data",
    [b'{"a": 1}, {"b": 2}', b'{"a": 1', b"[DONE]", b"7", b'[1], {"a": 1}', b""],
)
def test_data_that_is_no_object_leaves_the_other_documents(data):
    stream = b'event: one\ndata: {"n": 1}\n\ndata: ' + data + b'\n\ndata:{"n": 2}\n\n'
    assert [one for one in documents(stream) if one] == [{"n": 1}, {"n": 2}]


@given(data=st.data(), stream=streams())
def test_end_of_last_event_agrees_with_the_reader(data, stream):
    stream = stream[: data.draw(st.integers(0, len(stream)))]
    complete = sum(len(event.raw) for event in EventReader().feed(stream))
    end = end_of_last(stream)
    assert not stream[complete:end].strip(b"\r\n")
    assert not EventReader().feed(stream[end:])


def test_event_has_its_name_and_all_data_lines():
    (event,) = EventReader().feed(b": hello\nevent: told\ndata: one\ndata:two\nid: 3\n\n")
    assert (event.name, event.data) == ("told", b"one\ntwo")


def test_event_is_returned_as_soon_as_it_is_complete():
    reader = EventReader()
    assert reader.feed(b"data: 1\r\n\r") == []
    assert [event.data for event in reader.feed(b"\ndata: 2")] == [b"1"]
    assert [event.data for event in reader.feed(b"\n\n")] == [b"2"]
    assert reader.end() == []


def test_written_document_is_read_again():
    (event,) = EventReader().feed(write({"a": "é\n"}, "told"))
    assert event.name == "told"
    assert event.document() == {"a": "é\n"}


def test_data_that_is_no_object_is_an_empty_document():
    events = EventReader().feed(b"data: [DONE]\n\ndata: [1]\n\n")
    assert [event.document() for event in events] == [{}, {}]

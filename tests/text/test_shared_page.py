"""The shared page of knowledge."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.shared_page import (
    SECTIONS,
    Entry,
    canonical,
    has_conflict,
    parse,
    remove_entries,
    render,
)

ID = "0193f3c2-1234-7abc-8def-0123456789ab"

texts = st.lists(
    st.sampled_from(
        ["- a point", "# a heading", "", "  indented", "```", "<!-- a comment -->", "\\\\<!-- x",
         "<!-- lore:0193f3c2-1234-7abc-8def-0123456789ab -->", "plain words", "\\\\\\\\<!--"]
    ),
    min_size=1,
).map("\n".join).filter(lambda text: bool(canonical(text)))  # fmt: skip
entries = st.lists(
    st.builds(Entry, st.uuids().map(str), st.sampled_from(list(SECTIONS)), texts.map(canonical)),
    max_size=6,
)


@given(entries)
def test_a_rendered_page_parses_to_its_entries(written: list[Entry]):
    page = parse(render(written))
    assert sorted(page.entries, key=repr) == sorted(written, key=repr)
    assert page.stray == ()


@given(entries)
def test_a_page_that_is_written_again_is_the_same(written: list[Entry]):
    once = render(written)
    assert render(parse(once).entries) == once


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str):
    parse(text)


def test_entries_that_people_add_and_move_are_parsed():
    page = parse(
        "# Anything\n\n## Decisions\n\n* Use tabs.\n+ Break\nlines anywhere.\n\n"
        f"## Own heading\n- A fact <!-- lore:{ID} -->\n\tmore of it\n\nA stray sentence.\n"
    )
    assert [(e.kind, e.text, e.id) for e in page.entries] == [
        ("decision", "Use tabs.", ""),
        ("decision", "Break\nlines anywhere.", ""),
        ("fact", "A fact\nmore of it", ID),
    ]
    assert page.stray == ((13, "A stray sentence."),)


def test_merge_conflict_markers_are_detected():
    assert has_conflict("- a\n<<<<<<< HEAD\n- b\n=======\n- c\n>>>>>>> other\n")
    assert not has_conflict("a <<<<<<< b\n")


@pytest.mark.parametrize("piece", ["\t", "\\", " ", "<!-- ", "<!-- lore:", "\n  b", "\n"])
def test_a_long_run_of_any_characters_is_one_entry(piece: str):
    written = f"- a{piece * (1_000_000 // len(piece))}b <!-- lore:{ID} -->\n"
    page = parse(written)
    assert [entry.text[0] for entry in page.entries] == ["a"]
    assert remove_entries(written, bool) == ""
    rendered = render(replace(entry, id=ID) for entry in page.entries)
    assert [entry.text for entry in parse(rendered).entries] == [e.text for e in page.entries]

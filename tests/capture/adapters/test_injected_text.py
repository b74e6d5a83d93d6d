"""Base64 is dropped, and nothing else."""

from __future__ import annotations

import base64
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.capture.adapters import injected_text
from lore.text import memory_tags

GIVEN = memory_tags.wrap_memory("The staging port is 5436.")
WORDS = memory_tags.inner_text(GIVEN)


@pytest.mark.parametrize(
    "text",
    [
        GIVEN,
        f"The hook says: {GIVEN} And so on.",
        f"The hook says: <lore-memory>{WORDS}",
        f"{WORDS}</lore-memory> And so on.",
        f"{GIVEN} Once more: <lore-memory>{WORDS}… (cut off)",
        f"<lore-memory>{WORDS}<lore-memory>{WORDS}</lore-memory>",
    ],
)
def test_injected_part_has_no_memory_even_with_truncated_tags(text: str):
    told = injected_text.injected_part(text).text
    assert "5436" not in told
    assert injected_text.MEMORY_PLACEHOLDER in told
    wrapped = f"<system-reminder>\n{text}\n</system-reminder>"
    assert "5436" not in "".join(part.text for part in injected_text.split_typed(wrapped))


def test_injected_part_keeps_text_outside_the_memory_tags():
    told = injected_text.injected_part(f"The hook says: {GIVEN} And so on.").text
    assert told.startswith("The hook says: ")
    assert told.endswith(" And so on.")


def test_typed_text_beside_half_a_tag_is_kept():
    (typed, aside) = injected_text.split_typed("Why is it cut off? <lore-memory>The staging")
    assert (typed.kind, typed.text) == ("text", "Why is it cut off? ")
    assert aside.kind == "aside"


BYTES = base64.b64encode(random.Random(3).randbytes(3000)).decode()


def test_a_data_uri_becomes_its_kind():
    assert (
        injected_text.strip_data_uris("see data:image/png;base64,iVBORw0KGgo= there")
        == "see [image/png] there"
    )
    assert (
        injected_text.strip_data_uris("data:text/plain;charset=utf-8;base64,AAAA") == "[text/plain]"
    )


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_long_run_is_found_wherever_it_stands(before, after):
    text = f"{'word ' * (before // 5)}\n{BYTES} {'word ' * (after // 5)}"
    assert BYTES[:100] not in injected_text.strip_base64(text)
    assert injected_text.strip_base64(text).count("word") == text.count("word")


@given(st.lists(st.sampled_from(["a" * 990, "b" * 9, "+/", " ", "\n", "\t", ".", "é"]), max_size=9))
def test_a_run_is_dropped_if_and_only_if_it_is_long(pieces):
    text = "".join(pieces)
    runs = re.findall(r"[A-Za-z0-9+/_-]+", text)
    assert ("[base64]" in injected_text.strip_base64(text)) == any(len(run) >= 1000 for run in runs)


def test_words_paths_and_hashes_stay():
    text = "/code/a/b/c " * 300 + "9f86d081884c7d659a2feaa0c55ad015" * 20 + " " + "word " * 2000
    assert injected_text.strip_base64(text) is text
    assert injected_text.strip_base64("short") == "short"

"""Base64 is dropped, and nothing else."""

import base64
import random
import re

from hypothesis import given
from hypothesis import strategies as st

from lore.capture.adapters import payloads

BYTES = base64.b64encode(random.Random(3).randbytes(3000)).decode()


def test_a_data_uri_becomes_its_kind():
    assert (
        payloads.without_uris("see data:image/png;base64,iVBORw0KGgo= there")
        == "see [image/png] there"
    )
    assert payloads.without_uris("data:text/plain;charset=utf-8;base64,AAAA") == "[text/plain]"


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_long_run_is_found_wherever_it_stands(before, after):
    text = f"{'word ' * (before // 5)}\n{BYTES} {'word ' * (after // 5)}"
    assert BYTES[:100] not in payloads.without(text)
    assert payloads.without(text).count("word") == text.count("word")


@given(st.lists(st.sampled_from(["a" * 990, "b" * 9, "+/", " ", "\n", "\t", ".", "é"]), max_size=9))
def test_a_run_is_dropped_if_and_only_if_it_is_long(pieces):
    text = "".join(pieces)
    runs = re.findall(r"[A-Za-z0-9+/_-]+", text)
    assert ("[base64]" in payloads.without(text)) == any(len(run) >= 1000 for run in runs)


def test_words_paths_and_hashes_stay():
    text = "/code/a/b/c " * 300 + "9f86d081884c7d659a2feaa0c55ad015" * 20 + " " + "word " * 2000
    assert payloads.without(text) is text
    assert payloads.without("short") == "short"

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline.topics import trees


@given(st.lists(st.text(alphabet="abc ", max_size=12), max_size=12))
def test_every_statement_stands_in_one_place(texts):
    placed = [n for root, below in trees(texts, None) for n in (root, *below)]
    assert sorted(placed) == list(range(len(texts)))


def test_without_an_embedder_shared_words_make_a_topic():
    texts = ["red house with garden", "red house with big garden", "blue car"]
    assert trees(texts, None) == [(0, [1]), (2, [])]

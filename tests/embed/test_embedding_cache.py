from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lore.embed.embedding_cache import CachedEmbedder
from lore.memory import Memory
from tests.fakes import FakeEmbedder
from tests.transcripts import text_message


class Counting(FakeEmbedder):
    """Keeps what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, query: bool = False):
        self.texts += texts
        return super().embed(texts, query=query)


def test_repeated_text_is_embedded_once_and_order_is_kept():
    inner = Counting()
    embedder = CachedEmbedder(inner)
    embedder.embed(["one", "two"])
    rows = embedder.embed(["three", "two", "one", "three"])
    assert inner.texts == ["one", "two", "three"]
    assert np.array_equal(rows, FakeEmbedder().embed(["three", "two", "one", "three"]))
    assert embedder.embed([]).shape[0] == 0


def test_only_recent_passages_are_cached():
    inner = Counting()
    embedder = CachedEmbedder(inner, most=2)
    embedder.embed(["one", "two"])
    embedder.embed(["one"])
    embedder.embed(["three"])
    embedder.embed(["one", "two"])
    assert inner.texts == ["one", "two", "three", "two"]
    embedder.embed(["one"], query=True)
    assert inner.texts[-1] == "one"


def test_cache_holds_no_texts():
    embedder = CachedEmbedder(FakeEmbedder())
    embedder.embed(["The harbour opens at dawn."])
    assert "harbour" not in str(vars(embedder))


def test_curation_embeds_a_statement_once(tmp_path):
    inner = Counting()
    rule = "Always run the linter before you commit."
    other = "I prefer short functions with names that say what they do."
    with Memory.open(home=tmp_path, embedder=inner) as memory:
        memory.capture("s", [text_message("user", f"{rule} {other}")])
        memory.digest.curate("s")
    assert sorted(inner.texts) == sorted([rule, other])

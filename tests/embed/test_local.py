import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lore.embed.local import LocalEmbedder
from lore.embed.models import Model
from lore.errors import EmbedderError
from lore.settings import Settings
from tests.waiting import eventually

TEXTS = [
    "",
    "one",
    "How do I undo the last commit but keep my changes?",
    "The migration adds a column `owner_id` to `fragments`; it takes 40 ms per 100 k rows.",
    "def close(self) -> None:\n    self._closed.set()\n    with self._lock:\n        ...",
    "Grüße aus Zürich — 数据库 не работает 🚒",
    "the model reads words " * 20,
    "Caroline said that she would go to the support group on 7 May 2023. " * 12,
    "a cut text is compared as far as the limit goes, and not a word further " * 40,
]


Vectors = NDArray[np.float32]
Reference = Callable[[list[str]], Vectors]


def cosines(one: Vectors, other: Vectors) -> Vectors:
    products: Vectors = (one * other).sum(axis=1)
    return products


@pytest.fixture(scope="module")
def expected(reference: Reference) -> Vectors:
    """The vectors of the reference for all texts."""
    return reference(TEXTS)


def test_float32_agrees_with_the_reference(embedder: LocalEmbedder, expected: Vectors) -> None:
    found = embedder.embed(TEXTS)
    assert found.dtype == np.float32
    assert found.shape == (len(TEXTS), 384)
    assert cosines(found, expected).min() > 0.9999995


def test_every_length_around_a_boundary_agrees(
    embedder: LocalEmbedder, reference: Reference
) -> None:
    texts = ["tree " * count for count in (2, 32, 33, 253, 254, 255)]
    assert cosines(embedder.embed(texts), reference(texts)).min() > 0.9999995


def test_a_published_vector_is_reproduced(embedder: LocalEmbedder) -> None:
    # From the model card's own example.
    first = embedder.embed(["This is an example sentence"])[0, :5]
    expected = [0.06765694, 0.06349590, 0.04871310, 0.07930494, 0.03744805]
    np.testing.assert_allclose(first, expected, atol=2e-6)


def test_rows_have_length_one(embedder: LocalEmbedder) -> None:
    np.testing.assert_allclose(np.linalg.norm(embedder.embed(TEXTS), axis=1), 1, atol=1e-6)


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: LocalEmbedder) -> None:
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    together = embedder.embed(TEXTS[::-1] + TEXTS)
    np.testing.assert_allclose(together[len(TEXTS) :], alone, atol=1e-5)
    np.testing.assert_allclose(together[: len(TEXTS)], alone[::-1], atol=1e-5)


def test_the_same_text_gives_the_same_bytes(embedder: LocalEmbedder) -> None:
    assert embedder.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()


def test_no_texts_give_no_rows(embedder: LocalEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_blank_texts_have_the_vector_of_the_empty_text(embedder: LocalEmbedder) -> None:
    empty, blank, nul = embedder.embed(["", " \n\t", "\0\0"])
    np.testing.assert_array_equal(blank, empty)
    np.testing.assert_array_equal(nul, empty)


def test_unusual_characters_are_embedded(embedder: LocalEmbedder) -> None:
    odd = ["\ud800", "a\udfffb", "\0x", "\ufeff", "\u202e", "[SEP] [PAD]", "\U0010ffff"]
    assert np.isfinite(embedder.embed(odd)).all()


def test_only_the_start_of_a_long_text_counts(embedder: LocalEmbedder) -> None:
    long = embedder.embed(["word " * 2_000_000])
    np.testing.assert_array_equal(long, embedder.embed(["word " * 400]))


def test_threads_share_one_model(minilm: Model, weights: Path, home: Path) -> None:
    shared = LocalEmbedder(minilm, weights, Settings(home=home))
    expected = shared.embed(TEXTS[:6])
    shared.close()
    fresh = LocalEmbedder(minilm, weights, Settings(home=home))
    results: list[Vectors] = []
    threads = [
        threading.Thread(target=lambda: results.append(fresh.embed(TEXTS[:6]))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fresh.close()
    assert len(results) == 6
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_int8_is_close_to_reference_with_its_own_identity(
    minilm: Model, weights: Path, home: Path, expected: Vectors
) -> None:
    small = LocalEmbedder(minilm, weights, Settings(home=home, embed_precision="int8"))
    assert small.identity == "all-MiniLM-L6-v2/int8/256"
    found = small.embed(TEXTS)
    near = cosines(found, expected)
    assert near.mean() > 0.99
    assert near.min() > 0.97
    alone = np.concatenate([small.embed([text]) for text in TEXTS])
    np.testing.assert_array_equal(found, alone)
    small.close()


def test_windows_are_averaged_by_their_tokens(
    minilm: Model, weights: Path, home: Path, embedder: LocalEmbedder
) -> None:
    wide = LocalEmbedder(minilm, weights, Settings(home=home), windows=2)
    assert wide.identity == "all-MiniLM-L6-v2/float32/256x2"
    first, second = "stone " * 254, "river " * 100
    parts = embedder.embed([first, second])
    expected = parts[0] * 256 + parts[1] * 102
    expected /= np.linalg.norm(expected)
    found = wide.embed(["short", first + second])
    np.testing.assert_allclose(found[1], expected, atol=1e-5)
    np.testing.assert_allclose(found[0], embedder.embed(["short"])[0], atol=1e-5)
    wide.close()


def test_the_model_is_loaded_on_first_use_and_unloaded_when_idle(
    minilm: Model, weights: Path, home: Path
) -> None:
    settings = Settings(home=home, embed_idle_unload_s=0.2)
    idle = LocalEmbedder(minilm, weights, settings)
    assert not idle.is_loaded()
    before = idle.embed(["hello"])
    assert idle.is_loaded()
    eventually(lambda: not idle.is_loaded())
    np.testing.assert_array_equal(idle.embed(["hello"]), before)
    idle.close()


def test_a_closed_embedder_refuses(minilm: Model, weights: Path, home: Path) -> None:
    closed = LocalEmbedder(minilm, weights, Settings(home=home))
    closed.close()
    with pytest.raises(EmbedderError, match="closed"):
        closed.embed(["hello"])


def test_weights_that_vanish_after_opening_are_reported(tmp_path: Path, minilm: Model) -> None:
    lost = LocalEmbedder(minilm, tmp_path / "gone", Settings(home=tmp_path))
    with pytest.raises(EmbedderError, match="cannot be read"):
        lost.embed(["hello"])


def test_all_cores_give_the_same_vectors(
    minilm: Model, weights: Path, home: Path, embedder: LocalEmbedder
) -> None:
    wide = LocalEmbedder(minilm, weights, replace(Settings(home=home), embed_threads=0))
    np.testing.assert_allclose(wide.embed(TEXTS), embedder.embed(TEXTS), atol=1e-5)
    wide.close()
